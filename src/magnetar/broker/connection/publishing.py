"""Producers' commands: open, send, close (SEMANTICS 3).

SEND is the hottest handler of the broker: one dictionary look-up, a few comparisons, one append.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from magnetar.broker.connection import transacting
from magnetar.broker.connection.bounds import check_producer
from magnetar.broker.connection.outbox import Outbox
from magnetar.broker.connection.schemas import version_for_producer
from magnetar.broker.connection.session import Pending, Session
from magnetar.broker.topic.ports import TopicLog
from magnetar.broker.topic.publish.producer import Pending as PendingEntry
from magnetar.broker.topic.publish.producer import Producer, ProducerInfo
from magnetar.broker.topic.publish.receipt_order import OrderedReceipts
from magnetar.broker.topic.topic_api import ServedTopic
from magnetar.model.errors import (
    MagnetarError,
    NotAllowedError,
    PersistenceError,
    ProducerBusyError,
    ProtocolError,
    ServerError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.receipts import Receipts

_CPP: Final = "Pulsar-CPP"
"""How the C++ client, and those built on it, begin to say what they are."""
_FOR_GOOD: Final = frozenset((ServerError.NotAllowedError, ServerError.MetadataError, ServerError.ChecksumError))
"""The message will be refused as often as it comes."""


class ProducerOutbox:
    """Results of one producer, on their way into its connection's outbox."""

    __slots__ = ("_log", "_out", "_producer_id", "_receipts", "_refusals", "_session")

    def __init__(self, session: Session, producer_id: int, log: TopicLog) -> None:
        self._log = log
        self._refusals: deque[tuple[int, c.CommandSendError]] = deque()
        """SEND_ERRORs that have to wait for what was sent before: behind everything below an ordinal."""
        self._session = session
        self._out: Outbox = session.out
        self._producer_id = producer_id
        self._receipts = Receipts(producer_id, -1)

    @property
    def session(self) -> object:
        """The session."""
        return self._session

    def receipts(self, ledger: int, first_entry: int, results: Sequence[PendingEntry]) -> None:
        """SEND_RECEIPTs, one write for all of them."""
        if self._refusals and ledger >= 0:
            results, first_entry = self._turns_of_refusals(ledger, first_entry, results)
        session = self._session
        session.pending_publishes -= len(results)
        if session.reading_paused:
            _resume(session)
        receipts = self._receipts
        if receipts.ledger != ledger:
            receipts = self._receipts = Receipts(self._producer_id, ledger)
        self._out.put(receipts.run([r[1] for r in results], first_entry, [r[2] for r in results]))

    def _turns_of_refusals(
        self, ledger: int, first_entry: int, results: Sequence[PendingEntry]
    ) -> tuple[Sequence[PendingEntry], int]:
        """Say what has to be said among these; what is left to be receipted."""
        first = self._log.exact_ordinal(Position(ledger, first_entry))
        while self._refusals and first is not None and self._refusals[0][0] < first + len(results):
            ordinal, refusal = self._refusals.popleft()
            before = max(ordinal - first, 0)
            if before:
                held, self._refusals = self._refusals, deque()
                self.receipts(ledger, first_entry, results[:before])
                self._refusals = held
            results, first, first_entry = results[before:], first + before, first_entry + before
            self._session.send(refusal)
        return results, first_entry

    def refuse(self, refusal: c.CommandSendError) -> None:
        """SEND_ERROR in its turn: clients take answers in the order in which they sent."""
        if not self._session.pending_publishes:
            self._session.send(refusal)
            return
        self._refusals.append((self._log.next, refusal))
        if len(self._refusals) == 1:
            self._log.barrier(self._all_before_decided, lambda error: self._refusals.clear())

    def _all_before_decided(self) -> None:
        refusals = self._refusals
        while refusals and refusals[0][0] <= self._log.end:
            self._session.send(refusals.popleft()[1])
        if refusals:
            self._log.barrier(self._all_before_decided, lambda error: self._refusals.clear())

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        """SEND_ERROR for each (SEMANTICS 3.3.5)."""
        session = self._session
        session.pending_publishes -= len(results)
        session.resume_reading()
        for result in results:
            session.send(c.CommandSendError(self._producer_id, result.sequence_id, error.code, str(error)))

    def unstored(self, results: Sequence[PendingEntry], *, dropped: bool) -> None:
        """SEND_RECEIPTs that all say 0:0, or -1:-1 (13.3), one write for all of them."""
        session = self._session
        session.pending_publishes -= len(results)
        if session.reading_paused:
            _resume(session)
        receipts = Receipts(self._producer_id, -1) if dropped else self._receipts
        if receipts.ledger != (place := -1 if dropped else 0):
            receipts = self._receipts = Receipts(self._producer_id, place)
        self._out.put(receipts.alike([r[1] for r in results], place, [r[2] for r in results]))

    def dropped(self, count: int) -> None:
        """The producer was let go before these were decided: nobody is told, but they wait no longer."""
        session = self._session
        session.pending_publishes -= count
        if session.reading_paused:
            _resume(session)

    def close(self) -> None:
        """CLOSE_PRODUCER from our side; what the client has under way is ignored for a while."""
        session = self._session
        if session.producers.pop(self._producer_id, None) is not None and not session.closed:
            session.recently_closed[self._producer_id] = session.loop.time()
            session.send(c.CommandCloseProducer(self._producer_id, -1))

    def fence(self) -> None:
        """Nothing is said: the next SEND is one for nobody, and that ends the connection."""
        self._session.producers.pop(self._producer_id, None)


def _resume(session: Session) -> None:
    """Read again once half of what made us stop is on disk; with nothing of its own pending a client always may."""
    service, pending = session.service, session.pending_publishes
    if pending <= service.pending_publishes_low and (
        not pending or session.journal.pending_bytes <= service.pending_bytes_high // 2
    ):
        session.resume_reading()


def send(session: Session, message: c.CommandSend) -> None:
    """SEND: the receipt follows when the entry is durable."""
    producer = session.producers.get(message[0])
    if producer is None or producer.__class__ is not Producer:
        _send_to_nobody(session, message)
        return
    try:
        if not message[9] or message[5] is not None or message[7] is not None:
            if message.txn is None or not message.checksum_ok or not transacting.send(session, producer, message):
                _send_refused(session, producer, message)
                return
        else:
            producer.publish(message)
    except MagnetarError as refused:
        _refuse(session, message, refused.code, str(refused))
        return
    if message[4]:
        _chunk_published(session, producer)
    session.pending_publishes += 1


def _chunk_published(session: Session, producer: Producer) -> None:
    producer.chunks_in += 1
    topic = session.service.topics.get(producer.log.name)
    if topic is not None:
        topic.chunking.published_one()


def _send_to_nobody(session: Session, message: c.CommandSend) -> None:
    closed_at = session.recently_closed.get(message.producer_id)
    if closed_at is not None:
        if session.loop.time() - closed_at < session.service.settings.keepAliveIntervalSeconds:
            return
        del session.recently_closed[message.producer_id]
    raise ProtocolError(f"SEND for producer {message.producer_id}, which is not open on this connection")


def _send_refused(session: Session, producer: Producer, message: c.CommandSend) -> None:
    if not message.checksum_ok:
        code, text = ServerError.ChecksumError, "Checksum failed on the broker"
    elif message.txn is not None:
        code, text = ServerError.NotAllowedError, transacting.why_refused(session, producer, message.txn)
    else:
        code, text = ServerError.NotAllowedError, "Only shadow topic supports sending messages with messageId"
    session.complain(code.name, "producer %d: message %d refused: %s", message.producer_id, message.sequence_id, text)
    _refuse(session, message, code, text)


def _refuse(session: Session, message: c.CommandSend, code: ServerError, text: str) -> None:
    """SEND_ERROR by which the client gives up this message and no other.

    Java's does so for NotAllowedError. The C++ client, and what is built on it (Python, Node), takes every code but one
    as the end of the connection, comes again and sends the same message again, for ever; with ChecksumError it fails
    that message, whatever else it would do with a damaged one (docs/decisions/019). What may be sent again is answered
    at once, with its own code.
    """
    if code not in _FOR_GOOD:
        session.send(c.CommandSendError(message.producer_id, message.sequence_id, code, text))
        return
    if code is not ServerError.ChecksumError and session.client_version.startswith(_CPP):
        text, code = f"{code.name}: {text}", ServerError.ChecksumError
    refusal = c.CommandSendError(message.producer_id, message.sequence_id, code, text)
    producer = session.producers.get(message.producer_id)
    connection = producer.connection if isinstance(producer, Producer) else None
    if isinstance(connection, OrderedReceipts):
        connection = connection.behind
    if isinstance(connection, ProducerOutbox):
        connection.refuse(refusal)
    else:
        session.send(refusal)


def open_producer(session: Session, command: c.CommandProducer) -> None:
    """PRODUCER: admitted once the topic is loaded and durable."""
    held = session.producers.get(command.producer_id)
    if isinstance(held, Pending):
        busy = ServiceNotReadyError("Producer is already present on the connection")
        session.fail(command.request_id, busy)
        return
    if held is not None and command.epoch <= held.info.epoch:
        session.send(c.CommandProducerSuccess(command.request_id, held.info.name, -1, held.info.schema_version, True))
        return
    if held is None:
        session.producers[command.producer_id] = pending = Pending()
    else:
        pending = Pending()
    try:
        check_producer(command)
        topic = session.service.served(TopicName.parse(command.topic), create=True)
    except TopicNotFoundError:
        _give_up(session, command, TopicNotFoundError(f"Topic not found {TopicName.parse(command.topic).fqn}"))
        return
    except MagnetarError as error:
        _give_up(session, command, error)
        return
    topic.when_durable(lambda error: _check_schema(session, command, topic, pending, error))


def _check_schema(
    session: Session, command: c.CommandProducer, topic: ServedTopic, pending: Pending, error: MagnetarError | None
) -> None:
    """Before anything else: a producer whose schema is refused leaves nothing behind (SEMANTICS 3.1.10)."""
    if error is None and not pending.cancelled and not session.closed:
        try:
            pending.schema_version = version_for_producer(session.service.schemas, topic.name, command.schema)
        except MagnetarError as refused:
            _give_up(session, command, refused)
            return
    _subscribe_first(session, command, topic, pending, error)


def _subscribe_first(
    session: Session, command: c.CommandProducer, topic: ServedTopic, pending: Pending, error: MagnetarError | None
) -> None:
    """The subscription that a producer brings along exists before its first message (SEMANTICS 3.1.9)."""
    name = command.initial_subscription_name
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
    if not topic.policies.auto_subscription_creation:
        text = "Could not create the initial subscription due to the auto subscription creation is not allowed."
        _give_up(session, command, NotAllowedError(text))
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
        _give_up(session, command, refused)


def _give_up(session: Session, command: c.CommandProducer, error: MagnetarError) -> None:
    if isinstance(session.producers.get(command.producer_id), Pending):
        del session.producers[command.producer_id]
    session.fail(command.request_id, error)


def _admit(
    session: Session,
    command: c.CommandProducer,
    topic: ServedTopic,
    pending: Pending,
    error: MagnetarError | None,
    *,
    retry: bool,
) -> None:
    if pending.cancelled or session.closed:
        return
    if error is not None:
        _give_up(session, command, error)
        return
    name = command.producer_name or session.service.new_producer_name()
    topic.checks.when_settled(name, lambda: _enter(session, command, topic, pending, name, retry=retry))


def _enter(
    session: Session, command: c.CommandProducer, topic: ServedTopic, pending: Pending, name: str, *, retry: bool
) -> None:
    """Ask the topic, which may let the producer wait for others to leave (SEMANTICS 3.2.4)."""
    if pending.cancelled or session.closed:
        return
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
        bool(session.features.supports_partial_producer),
        pending.schema_version,
    )
    producer = Producer(info, topic.log, ProducerOutbox(session, command.producer_id, topic.log))

    def admitted(error: MagnetarError | None) -> None:
        pending.on_cancel = None
        if pending.cancelled or session.closed:
            topic.producers.remove(producer)
            return
        if error is not None:
            _give_up(session, command, error)
            return
        session.producers[command.producer_id] = producer
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
        _give_up(session, command, refused)
        return
    if not entered:
        session.send(c.CommandProducerSuccess(command.request_id, name, -1, pending.schema_version, False))


def _busy(
    session: Session,
    command: c.CommandProducer,
    topic: ServedTopic,
    pending: Pending,
    busy: ProducerBusyError,
    *,
    retry: bool,
) -> None:
    """The name is taken: by a dead connection perhaps, so that one has to give a sign of life (3.1.2)."""
    holder = topic.producers.holder(command.producer_name or "")
    other = holder.connection.session if holder is not None else None
    if not retry or not isinstance(other, Session) or other is session:
        _give_up(session, command, busy)
        return

    def answered(alive: bool) -> None:
        if alive:
            _give_up(session, command, busy)
        else:
            _admit(session, command, topic, pending, None, retry=False)

    other.probe(answered)


def close_producer(session: Session, command: c.CommandCloseProducer) -> None:
    """CLOSE_PRODUCER: SUCCESS when what it sent is durable, also for an unknown id (1.3.9)."""
    held = session.producers.pop(command.producer_id, None)
    if isinstance(held, Pending):
        held.cancel()
    elif held is not None:
        service = session.service

        def closed() -> None:
            service.producer_left(held)
            session.send(c.CommandSuccess(command.request_id))

        try:
            held.log.barrier(closed)
        except BaseException:
            session.producers[command.producer_id] = held  # whoever ends the connection finds it
            raise
        return
    session.send(c.CommandSuccess(command.request_id))
