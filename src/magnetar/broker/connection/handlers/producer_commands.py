"""PRODUCER and CLOSE_PRODUCER: admission of a producer to its topic, and its end (rules of group 3)."""

from __future__ import annotations

from magnetar.broker.connection.bounds.metadata_bounds import check_producer
from magnetar.broker.connection.handlers.guarded_commands import still_allowed
from magnetar.broker.connection.handlers.metadata_write import write_metadata
from magnetar.broker.connection.handlers.schema_commands import version_for_producer
from magnetar.broker.connection.open_handles import PendingOpen
from magnetar.broker.connection.producer_outbox import ProducerOutbox
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.publish.producer import Producer, ProducerInfo
from magnetar.broker.topic.topic_api import TopicApi
from magnetar.model.errors import (
    MagnetarError,
    NotAllowedError,
    ProducerBusyError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c


def open_producer(session: Session, command: c.CommandProducer) -> None:
    """Handle PRODUCER: the producer is admitted once the topic is loaded and durable."""
    held = session.producers.get(command.producer_id)
    if isinstance(held, PendingOpen):
        busy = ServiceNotReadyError("Producer is already present on the connection")
        session.fail(command.request_id, busy)
        return
    if held is not None and command.epoch <= held.info.epoch:
        session.send(c.CommandProducerSuccess(command.request_id, held.info.name, -1, held.info.schema_version, True))
        return
    pending = PendingOpen()
    if held is None:
        session.producers[command.producer_id] = pending
    else:
        if command.producer_id in session.reopening:
            session.fail(command.request_id, ServiceNotReadyError("Producer is already present on the connection"))
            return
        session.reopening[command.producer_id] = pending
    try:
        check_producer(command)
        name = TopicName.parse(command.topic)
    except MagnetarError as error:
        _give_up(session, command, pending, error)
        return
    if name.persistent:
        session.service.store.when_entries_are_taken(
            lambda refused: _find_topic(session, command, name, pending, refused)
        )
    else:
        _find_topic(session, command, name, pending, None)


def _find_topic(
    session: Session, command: c.CommandProducer, name: TopicName, pending: PendingOpen, refused: MagnetarError | None
) -> None:
    """Find or make the topic, unless its messages would be refused now: a client that is let in sends them again at
    once, and so for ever (decision 069)."""
    if pending.cancelled or session.closed:
        return
    if refused is not None:
        _give_up(session, command, pending, refused)
        return
    try:
        topic = session.service.served(name, create=True)
    except TopicNotFoundError:
        _give_up(session, command, pending, TopicNotFoundError(f"Topic not found {name.fqn}"))
        return
    except MagnetarError as error:
        _give_up(session, command, pending, error)
        return
    topic.when_durable(lambda error: _check_schema(session, command, topic, pending, error))


def _check_schema(
    session: Session, command: c.CommandProducer, topic: TopicApi, pending: PendingOpen, error: MagnetarError | None
) -> None:
    """Check the schema first: a producer whose schema is refused leaves no trace (rule 3.1.10)."""

    def checked(version: bytes | None, refused: MagnetarError | None) -> None:
        if refused is not None and not pending.cancelled and not session.closed:
            _give_up(session, command, pending, refused)
            return
        pending.schema_version = version or b""
        _subscribe_first(session, command, topic, pending, None)

    if error is None and not pending.cancelled and not session.closed:
        write_metadata(
            session, version_for_producer(session.service.schemas, topic.name, command.schema), checked, "PRODUCER"
        )
    else:
        _subscribe_first(session, command, topic, pending, error)


def _subscribe_first(
    session: Session, command: c.CommandProducer, topic: TopicApi, pending: PendingOpen, error: MagnetarError | None
) -> None:
    """Create the initial subscription of the producer, which exists before its first message (rule 3.1.9)."""
    name = command.initial_subscription_name
    if error is None and topic.closed:
        error = ServiceNotReadyError("Topic is temporarily unavailable")
    if (
        error is not None
        or not name
        or not topic.name.persistent
        or name in topic.subscriptions
        or pending.cancelled
        or session.closed
    ):
        _admit(session, command, topic, pending, error, retry=True)
        return
    topic.after_deletion(name, lambda error: _subscribe(session, command, topic, pending, name, error))


def _subscribe(
    session: Session, command: c.CommandProducer, topic: TopicApi, pending: PendingOpen, name: str,
    error: MagnetarError | None,
) -> None:  # fmt: skip
    if pending.cancelled or session.closed:
        return
    if error is not None:
        _give_up(session, command, pending, error)
        return
    if not topic.policies.auto_subscription_creation and name not in topic.subscriptions:
        text = "Could not create the initial subscription due to the auto subscription creation is not allowed."
        _give_up(session, command, pending, NotAllowedError(text))
        return
    try:
        topic.subscription(
            name,
            durable=True,
            ordinal=lambda: topic.log.first,
            properties={},
            done=lambda: _admit(session, command, topic, pending, None, retry=True),
        )
    except MagnetarError as refused:
        _give_up(session, command, pending, refused)


def _give_up(session: Session, command: c.CommandProducer, pending: PendingOpen, error: MagnetarError) -> None:
    _forget(session, command.producer_id, pending)
    session.fail(command.request_id, error)


def _forget(session: Session, producer_id: int, pending: PendingOpen) -> None:
    """Let go of an opening that has come to its end; a later one of the same id stays."""
    if session.producers.get(producer_id) is pending:
        del session.producers[producer_id]
    elif session.reopening.get(producer_id) is pending:
        del session.reopening[producer_id]


def _admit(
    session: Session,
    command: c.CommandProducer,
    topic: TopicApi,
    pending: PendingOpen,
    error: MagnetarError | None,
    *,
    retry: bool,
) -> None:
    if pending.cancelled or session.closed:
        return
    if error is not None:
        _give_up(session, command, pending, error)
        return
    name = command.producer_name or session.service.new_producer_name()
    topic.checks.when_settled(name, lambda: _enter(session, command, topic, pending, name, retry=retry))


def _enter(
    session: Session, command: c.CommandProducer, topic: TopicApi, pending: PendingOpen, name: str, *, retry: bool
) -> None:
    """Ask the topic, which may let the producer wait for others to leave (rule 3.2.4)."""
    if pending.cancelled or session.closed:
        return
    settings = session.service.settings
    info = ProducerInfo(
        command.producer_id,
        name,
        bool(command.producer_name) and command.user_provided_producer_name,
        command.epoch,
        command.producer_access_mode,
        command.encrypted,
        session.address,
        session.service.timestamp(),
        session.client_version,
        dict(command.metadata),
        settings.aggregatePublisherStatsByProducerName and bool(session.features.supports_partial_producer),
        pending.schema_version,
    )
    producer = Producer(info, topic.log, ProducerOutbox(session, command.producer_id, topic.log))

    def admitted(error: MagnetarError | None) -> None:
        pending.on_cancel = None
        if pending.cancelled or session.closed:
            topic.producers.remove(producer)
            return
        if error is not None:
            _give_up(session, command, pending, error)
            return
        held = session.producers.get(command.producer_id)
        _forget(session, command.producer_id, pending)
        if not still_allowed(session, command):
            topic.producers.remove(producer)
            return
        session.producers[command.producer_id] = producer
        if isinstance(held, Producer):
            # an earlier life of this id, maybe in another topic: it could never be closed again
            session.service.producer_left(held)
        session.recently_closed.pop(command.producer_id, None)
        last = topic.checks.last_sequence_id(name)
        version = pending.schema_version
        session.send(c.CommandProducerSuccess(command.request_id, name, last, version, True, producer.topic_epoch))

    pending.on_cancel = lambda: topic.producers.remove(producer)
    try:
        entered = topic.add_producer(producer, command.topic_epoch, admitted)
    except ProducerBusyError as busy:
        pending.on_cancel = None
        _busy(session, command, topic, pending, busy, retry=retry)
        return
    except MagnetarError as refused:
        pending.on_cancel = None
        _give_up(session, command, pending, refused)
        return
    if not entered:
        session.send(c.CommandProducerSuccess(command.request_id, name, -1, pending.schema_version, False))


def _busy(
    session: Session,
    command: c.CommandProducer,
    topic: TopicApi,
    pending: PendingOpen,
    busy: ProducerBusyError,
    *,
    retry: bool,
) -> None:
    """The name is taken: its connection may be dead, so it has to give a sign of life (rule 3.1.2)."""
    holder = topic.producers.holder(command.producer_name or "")
    other = holder.connection.session if holder is not None else None
    if not retry or not isinstance(other, Session) or other is session:
        _give_up(session, command, pending, busy)
        return

    def answered(alive: bool) -> None:
        if alive:
            _give_up(session, command, pending, busy)
        else:
            _admit(session, command, topic, pending, None, retry=False)

    other.probe(answered)


def close_producer(session: Session, command: c.CommandCloseProducer) -> None:
    """Answer CLOSE_PRODUCER with SUCCESS when what it sent is durable, also for an unknown id (rule 1.3.9)."""
    reopening = session.reopening.pop(command.producer_id, None)
    if reopening is not None:
        reopening.cancel()
    held = session.producers.pop(command.producer_id, None)
    if isinstance(held, PendingOpen):
        held.cancel()
    elif held is not None:
        service = session.service

        def closed() -> None:
            service.producer_left(held)
            session.send(c.CommandSuccess(command.request_id))

        try:
            # also when the disk refuses: then what the producer sent was refused
            held.log.barrier(closed, lambda error: closed())
        except BaseException:
            session.producers[command.producer_id] = held  # the end of the connection finds it there
            raise
        return
    session.send(c.CommandSuccess(command.request_id))
