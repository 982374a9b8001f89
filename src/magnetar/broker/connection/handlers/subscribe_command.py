"""SUBSCRIBE: find or make the topic, find or make the subscription, join it (rules 5.1, 4.3).

Four waits may lie between the command and its SUCCESS: for a new topic, for the deletion of a subscription of that
name, for a new cursor, and for the sign of life of a consumer that holds the place: an Exclusive one, or one that
declared hash ranges.
"""

from __future__ import annotations

from typing import Any

from magnetar.broker.connection.bounds.metadata_bounds import check_subscribe
from magnetar.broker.connection.consumer_outbox import ConsumerOutbox
from magnetar.broker.connection.handlers.guarded_commands import still_allowed
from magnetar.broker.connection.handlers.metadata_write import write_metadata
from magnetar.broker.connection.handlers.schema_commands import admit_consumer, takes_any_schema
from magnetar.broker.connection.indexed_outbox import IndexedOutbox
from magnetar.broker.connection.old_client_outbox import CHECKSUM_VERSION, OldClientOutbox
from magnetar.broker.connection.open_handles import OpenConsumer, PendingOpen
from magnetar.broker.connection.session import Session
from magnetar.broker.delivery.sticky_keys.sticky_ranges import RangeTakenError
from magnetar.broker.policies.subscribe_rate_limiter import ConsumerIdentifier
from magnetar.broker.topic.topic_api import SubscriptionApi, TopicApi
from magnetar.model.errors import (
    ConsumerBusyError,
    MagnetarError,
    NotAllowedError,
    PersistenceError,
    ProducerBusyError,
    ServiceNotReadyError,
    SubscriptionNotFoundError,
)
from magnetar.model.ids import Position
from magnetar.model.names import TopicName, refusal_of_subscription
from magnetar.model.own_properties import REPLICATED
from magnetar.model.subscription_types import SubType
from magnetar.protocol import commands as c

_RESERVED = ("pulsar.repl", "pulsar.dedup")


def subscribe(session: Session, command: c.CommandSubscribe) -> None:
    """Handle SUBSCRIBE."""
    held = session.consumers.get(command.consumer_id)
    if isinstance(held, OpenConsumer):
        session.send(c.CommandSuccess(command.request_id))
        return
    if held is not None:
        session.fail(command.request_id, ServiceNotReadyError("Consumer is already present on the connection"))
        return
    try:
        check_subscribe(command, session.service.settings.maxConsumerMetadataSize)
        name = TopicName.parse(command.topic)
        _check(session, command, name)
        topic = session.service.served(name, create=command.force_topic_creation)
    except MagnetarError as error:
        session.fail(command.request_id, error)
        return
    pending = session.consumers[command.consumer_id] = PendingOpen()
    _Joining(session, command, topic, pending).begin()


def _check(session: Session, command: c.CommandSubscribe, name: TopicName) -> None:
    if name.persistent and not command.subscription:
        raise ProducerBusyError("Empty subscription name")
    if name.persistent and command.subscription.startswith(_RESERVED):
        raise ProducerBusyError("Subscription with reserved subscription name attempted")
    if command.sub_type is SubType.Key_Shared and not session.service.settings.subscriptionKeySharedEnable:
        raise NotAllowedError("Key_Shared subscription is disabled by broker.")
    if command.read_compacted and command.sub_type in (SubType.Shared, SubType.Key_Shared):
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")
    if command.read_compacted and not name.persistent:
        raise NotAllowedError("readCompacted only valid on persistent topics")


class _Joining:
    """One SUBSCRIBE under way."""

    def __init__(self, session: Session, command: c.CommandSubscribe, topic: TopicApi, pending: PendingOpen) -> None:
        self._session = session
        self._command = command
        self._topic = topic
        self._pending = pending
        self._subscription: SubscriptionApi | None = None
        self._early = False
        """The cursor was durable before its subscription was returned."""

    def begin(self) -> None:
        self._topic.when_durable(self._topic_ready)

    def _topic_ready(self, error: MagnetarError | None) -> None:
        command, topic = self._command, self._topic
        if error is None and topic.closed:
            error = ServiceNotReadyError("Topic is temporarily unavailable")
        if self._goes_on(error):
            topic.after_deletion(command.subscription, self._nothing_deleted)

    def _nothing_deleted(self, error: MagnetarError | None) -> None:
        """What is there now stays, or is made afresh."""
        topic = self._topic
        if error is None and topic.closed:
            error = ServiceNotReadyError("Topic is temporarily unavailable")
        if not self._goes_on(error) or not self._may_exist():
            return
        if self._creates():
            self._session.service.store.when_records_are_taken(self._may_join)
        else:
            self._may_join(None)

    def _creates(self) -> bool:
        """Whether the subscription is missing and a cursor for it is to be made."""
        command, topic = self._command, self._topic
        return command.subscription not in topic.subscriptions and command.durable and topic.name.persistent

    def _may_exist(self) -> bool:
        """Whether the subscription exists or may be made; the client gets the refusal."""
        name, topic = self._command.subscription, self._topic
        if self._session.service.settings.strictlyVerifySubscriptionName and name not in topic.subscriptions:
            refusal = refusal_of_subscription(name)
            if refusal:
                self._give_up(ProducerBusyError(refusal))
                return False
        allowed = topic.policies.auto_subscription_creation or not self._creates()
        if not allowed:
            self._give_up(SubscriptionNotFoundError("Subscription does not exist"))
        return allowed

    def _may_join(self, refused: MagnetarError | None) -> None:
        command, topic = self._command, self._topic
        if not self._goes_on(refused):
            return
        try:
            topic.check_consumer(command.sub_type)
            self._check_rate()
        except MagnetarError as error:
            self._give_up(error)
            return
        admission = admit_consumer(self._session.service.schemas, topic, command.schema)
        write_metadata(self._session, admission, self._schema_admitted, "SUBSCRIBE")

    def _schema_admitted(self, _: None, error: MagnetarError | None) -> None:
        if self._goes_on(error):  # it may have been deleted since it was looked at
            self._topic.after_deletion(self._command.subscription, self._open)

    def _open(self, error: MagnetarError | None) -> None:
        command, topic = self._command, self._topic
        if not self._goes_on(error) or not self._may_exist():
            return
        try:
            found = topic.subscription(
                command.subscription,
                durable=command.durable,
                ordinal=self._first_ordinal,
                properties=self._properties(),
                done=self._cursor_durable,
            )
        except MagnetarError as refused:
            self._give_up(refused)
            return
        self._subscription = found
        if self._early:
            self._cursor_ready(found)

    def _properties(self) -> dict[str, str]:
        command = self._command
        return {**dict(command.subscription_properties), **(REPLICATED if command.replicate_subscription_state else {})}

    def _check_rate(self) -> None:
        """The subscribe rate limits persistent topics only, as in Apache Pulsar (rule 14.6)."""
        session, command, topic = self._session, self._command, self._topic
        if topic.name.persistent:
            who = ConsumerIdentifier(topic.name.fqn, session.host, command.consumer_name or "", command.consumer_id)
            session.service.subscribe_rate_limiter.check(topic.policies.subscribe_rate, who, session.loop.time())

    def _first_ordinal(self) -> int:
        """Where a cursor that does not exist yet begins (rules 4.3.5, 4.3.6).

        The entry that a start id names is delivered, batched or not: the client drops what it has seen already.
        """
        command, topic = self._command, self._topic
        start = command.start_message_id
        log = topic.reading_log(compacted=command.read_compacted)
        if not command.durable and start is not None:
            return log.ordinal(Position(start.ledger, start.entry))
        return log.first if command.initial_position is c.InitialPosition.Earliest else topic.log.end

    def _cursor_durable(self) -> None:
        if self._subscription is None:
            self._early = True
        else:
            self._cursor_ready(self._subscription)

    def _cursor_ready(self, subscription: SubscriptionApi) -> None:
        back = self._command.start_message_rollback_duration_sec
        if self._stopped():
            return  # only a durable one is waited for, and it stays
        if back > 0 and not self._topic.closed:
            now = self._session.service.clock.now_ms()
            self._topic.read_by(subscription, compacted=self._command.read_compacted)
            self._topic.find_time(now - back * 1000, lambda found: self._rolled_back(subscription, found), subscription)
        else:
            self._join(subscription, retry=True)

    def _rolled_back(self, subscription: SubscriptionApi, found: int | Exception) -> None:
        if isinstance(found, Exception):
            self._give_up(PersistenceError(str(found)))
            return
        try:
            subscription.seek_to(found, lambda: self._join(subscription, retry=True))
        except MagnetarError as refused:
            self._give_up(refused)

    def _join(self, subscription: SubscriptionApi, *, retry: bool) -> None:
        session, command = self._session, self._command
        if self._stopped():
            self._topic.consumer_gone(subscription)
            return
        if self._topic.subscriptions.get(subscription.name) is not subscription or self._topic.closed:
            # the subscription went meanwhile: deleted, unloaded with its topic, or non-durable and its last consumer
            # left
            self._subscription, self._early = None, False
            self._topic_ready(None)
            return
        if not still_allowed(session, command):
            self._leave(subscription)
            return
        settings, asked = session.service.settings, session.features.supports_broker_entry_metadata
        indexed = asked and settings.exposingBrokerEntryMetadataToClientEnabled and settings.keeps_message_index
        outbox: type[ConsumerOutbox] = IndexedOutbox if indexed else ConsumerOutbox
        if session.protocol_version < CHECKSUM_VERSION:
            outbox = OldClientOutbox
        connection = outbox(session, command.consumer_id, self._topic.name.partition_index)
        self._topic.read_by(subscription, compacted=command.read_compacted)
        try:
            consumer = subscription.add_consumer(
                connection,
                name=command.consumer_name or _random_name(session),
                consumer_id=command.consumer_id,
                sub_type=command.sub_type,
                priority=command.priority_level or 0,
                key_shared=command.key_shared_meta,
                epoch=command.consumer_epoch,
                info=self._info(),
            )
        except (ConsumerBusyError, RangeTakenError) as busy:
            self._busy(subscription, busy, retry=retry)
            return
        except MagnetarError as error:
            self._give_up(error)
            return
        session.consumers[command.consumer_id] = OpenConsumer(self._topic, subscription, consumer)
        session.send(c.CommandSuccess(command.request_id))

    def _busy(self, subscription: SubscriptionApi, busy: ConsumerBusyError | RangeTakenError, *, retry: bool) -> None:
        """Another consumer holds the place: it has to give a sign of life (rules 5.3.1, 5.6.8)."""
        connection = self._holder(subscription, busy)
        if not retry or not isinstance(connection, ConsumerOutbox) or connection.session is self._session:
            self._give_up(busy)
            return
        connection.session.probe(lambda alive: self._give_up(busy) if alive else self._join(subscription, retry=False))

    def _holder(self, subscription: SubscriptionApi, busy: ConsumerBusyError | RangeTakenError) -> object:
        """The connection of the one consumer that is in the way, None if it is not about one."""
        if isinstance(busy, RangeTakenError):
            return busy.holder.connection
        active = subscription.active_consumer
        exclusive = self._command.sub_type is c.SubType.Exclusive and subscription.sub_type is SubType.Exclusive
        return active.connection if exclusive and active is not None else None

    def _info(self) -> dict[str, Any]:
        return {
            "address": self._session.address,
            "connectedSince": self._session.service.timestamp(),
            "clientVersion": self._session.client_version,
            "role": self._session.caller.role,
            "metadata": dict(self._command.metadata),
            "takesAnySchema": takes_any_schema(self._command.schema),
        }

    def _stopped(self) -> bool:
        return self._pending.cancelled or self._session.closed

    def _goes_on(self, error: MagnetarError | None) -> bool:
        """Whether the client still wants it, and there is no error; the client gets the error."""
        if self._stopped():
            return False
        if error is not None:
            self._give_up(error)
        return error is None

    def _give_up(self, error: MagnetarError) -> None:
        self._leave(self._subscription)
        if not self._stopped():
            self._session.fail(self._command.request_id, error)

    def _leave(self, subscription: SubscriptionApi | None) -> None:
        consumers, consumer_id = self._session.consumers, self._command.consumer_id
        if consumers.get(consumer_id) is self._pending:
            del consumers[consumer_id]
        if subscription is not None:
            self._topic.consumer_gone(subscription)


def _random_name(session: Session) -> str:
    return f"{session.service.rng.getrandbits(40):010x}"[:10]
