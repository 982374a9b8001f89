"""A subscription of a non-persistent topic: consumers with permits get a message when it passes.

The dispatchers of persistent subscriptions choose (rule 13.4), with settings that take away what needs a memory: every
entry counts as acknowledged when it was sent, one entry at a time goes round, a Failover consumer takes over at once
and without ACTIVE_CONSUMER_CHANGE, and entries that Key_Shared would keep for their owner are dropped. Messages that no
consumer got are counted. Acknowledgements, redelivery and seek are no-ops that are answered (rules 13.5, 13.11).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.delivery.instructions import Slice
from magnetar.broker.delivery.permits import buy
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.dispatch.members import Members
from magnetar.broker.topic.nonpersistent.fan_out import FanOutGroup
from magnetar.broker.topic.ports import ConsumerConnection, Done, notify
from magnetar.broker.topic.subscription.acknowledgements import IndexAck
from magnetar.broker.topic.subscription.subscription_stats import SubscriptionStats, Totals, consumers_stats
from magnetar.broker.topic.throughput import UNSEEN, Pace
from magnetar.model.errors import MetadataError
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.runtime.clock import Clock

_UNLIMITED = 1 << 62


def nonpersistent_settings(settings: DispatchSettings) -> DispatchSettings:
    """``settings`` for dispatchers whose entries are gone when they return."""
    return replace(
        settings,
        dispatcher_max_read_batch_size=_UNLIMITED,
        dispatcher_max_round_robin_batch_size=1,
        max_unacked_messages_per_consumer=0,
        max_unacked_messages_per_subscription=0,
        active_consumer_failover_delay_ms=0,
        key_shared_look_ahead_per_consumer=_UNLIMITED,
        key_shared_look_ahead_per_subscription=_UNLIMITED,
    )


class NoAcknowledgements:
    """Acknowledgements that are answered and mean nothing."""

    def take(self, consumer: Consumer, ordinals: Sequence[int], durable: Done | None = None) -> None:
        """ACK."""
        notify(durable)

    def take_sets(self, consumer: Consumer, acks: Sequence[IndexAck], durable: Done | None = None) -> None:
        """ACK of parts of batches."""
        notify(durable)

    def take_until(
        self, consumer: Consumer, ordinal: int, durable: Done | None = None, batch: IndexAck | None = None
    ) -> None:
        """Cumulative ACK."""
        notify(durable)


class NonPersistentSubscription:
    """Made by its topic for its first consumer, forgotten with its last; takes :func:`nonpersistent_settings`."""

    mark_delete = -1

    def __init__(
        self,
        topic: TopicIdentity,
        name: str,
        settings: DispatchSettings,
        clock: Clock,
        sticky_keys: Callable[[Sequence[bytes]], list[bytes]],
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.topic = topic
        self.properties = dict(properties)
        self.name = name
        self.settings = settings
        self.durable = False
        """False for every client: nothing of it outlives its consumers."""
        self.acks = NoAcknowledgements()
        self.totals = Totals()
        self.pace: Pace = UNSEEN
        self.dropped = 0
        """Messages that passed and that no consumer could take."""
        self._clock = clock
        self._sticky_keys = sticky_keys
        self._members = Members(topic, name)

    # -- members -----------------------------------------------------------------------------------------------

    @property
    def consumers(self) -> list[Consumer]:
        """The consumers in join order."""
        return self._members.consumers

    @property
    def active_consumer(self) -> Consumer | None:
        """The consumer that Exclusive and Failover serve."""
        return self._members.active

    @property
    def sub_type(self) -> SubType | None:
        """The type that the first consumer asked for."""
        return self._members.sub_type

    @property
    def dispatcher(self) -> Dispatcher | None:
        """What chooses the consumers; None before the first one."""
        return self._members.dispatcher

    def add_consumer(
        self,
        connection: ConsumerConnection,
        *,
        name: str,
        consumer_id: int,
        sub_type: SubType,
        priority: int = 0,
        key_shared: KeySharedMeta | None = None,
        epoch: int | None = None,
        info: dict[str, Any] | None = None,
    ) -> Consumer:
        """A consumer joins, with 0 permits. Raises ConsumerBusyError or ConsumerAssignError, then nothing changed."""
        consumer, _ = self._members.join(
            connection, self.settings, name=name, consumer_id=consumer_id, sub_type=sub_type, priority=priority,
            key_shared=key_shared, epoch=epoch, info=info,
        )  # fmt: skip
        return consumer

    def remove_consumer(self, consumer: Consumer, *, lost: bool = False) -> None:
        """It left or its connection was lost: either way nothing that it had comes again."""
        self._leave(consumer)

    def _leave(self, consumer: Consumer) -> bool:
        if self._members.leave(consumer) is None:
            return False
        self.totals.add(consumer)
        return True

    def close(self) -> None:
        """Unload or delete: every client is disconnected."""
        for consumer in self.consumers:
            if self._leave(consumer):
                consumer.connection.close()

    # -- flow --------------------------------------------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """FLOW; the connection has refused ``permits`` below 1 (rule 5.2.1)."""
        dispatcher = self._members.dispatcher
        if dispatcher is not None and consumer.state in self._members.by_state:
            consumer.last_flow_ms = self._clock.now_ms()
            dispatcher.flow(consumer.state, permits)

    def resume(self, consumer: Consumer) -> None:
        """The socket takes more again: what comes from now on."""

    def deliver(self, group: FanOutGroup) -> int:
        """Messages pass; how many entries consumers were given."""
        dispatcher, consumers = self._members.dispatcher, self._members.by_state
        given = entries_given = 0
        if dispatcher is not None:
            now = self._clock.now_ms()
            for piece in self._choose(dispatcher, group):
                consumer = consumers[piece.consumer]
                entries = [group.entries[at] for at in piece.ordinals]
                consumer.connection.deliver_unstored(entries)
                counts = group.counts
                messages = len(entries) if counts is None else sum([counts[at] for at in piece.ordinals])
                consumer.sent(len(entries), messages, sum(map(len, entries)), now)
                given += messages
                entries_given += len(entries)
                dispatcher.acknowledged(piece.consumer, piece.ordinals)
            if dispatcher.in_replay:
                dispatcher.acknowledged_until(len(group.entries))
        self.dropped += group.messages - given
        return entries_given

    def _choose(self, dispatcher: Dispatcher, group: FanOutGroup) -> list[Slice]:
        counts, stop = group.counts, len(group.entries)
        dispatcher.new_turn()
        if isinstance(dispatcher, SingleActiveConsumer):
            # a read is sent whole however few permits are left by then; here nothing was read, so permits decide
            permits = dispatcher.wanted()
            if not permits:
                return []
            stop = min(stop, permits) if counts is None else buy(counts, 0, stop, permits, _UNLIMITED)[0]
            counts = None if counts is None else counts[:stop]
        key_slot = dispatcher.key_slot
        slots = None
        if key_slot is not None:
            slots = list(map(key_slot, self._sticky_keys(group.entries[:stop])))
        return dispatcher.assign(0, stop, counts, slots)[0]

    # -- what leaves no trace ----------------------------------------------------------------------------------

    def redeliver(self, consumer: Consumer, ordinals: Sequence[int] | None, epoch: int | None = None) -> None:
        """REDELIVER."""

    def seek_to(
        self, ordinal: int, durable: Done | None = None, ack_set: tuple[int, ...] = (), batch_size: int = 0
    ) -> None:
        """SEEK: no consumer is disconnected (rule 13.11)."""
        notify(durable)

    def check_unsubscribe(self, consumer: Consumer, *, force: bool = False) -> None:
        """Whether this consumer may delete the subscription.

        With ``force`` the others are disconnected (rule 5.9.9).
        """
        others = [other for other in self.consumers if other is not consumer]
        if force:
            for other in others:
                if self._leave(other):
                    other.connection.close()
        elif others or consumer.state not in self._members.by_state:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")

    # -- statistics --------------------------------------------------------------------------------------------

    def counters(self) -> Totals:
        """What has passed to consumers since the subscription was made; a copy."""
        return self.totals.with_those(self.consumers)

    def stats(self, only: Consumer | None = None) -> SubscriptionStats:
        """Backlog and unacknowledged messages are 0 by nature; marks are -1."""
        totals, consumers, dispatcher = self.counters(), self.consumers, self.dispatcher
        active = self.active_consumer
        return SubscriptionStats(
            type="None" if self.sub_type is None else self.sub_type.name,
            backlog_entries=0,
            unacked_messages=0,
            in_replay=0,
            delayed_entries=0,
            blocked_on_unacked=False,
            active_consumer_name=active.name if active else "",
            entries_out=totals.entries_out,
            messages_out=totals.messages_out,
            bytes_out=totals.bytes_out,
            messages_redelivered=0,
            acked_entries=0,
            expired=0,
            last_expired_ms=0,
            jumped=0,
            last_flow_ms=totals.last_flow_ms,
            last_sent_ms=totals.last_sent_ms,
            last_acked_ms=0,
            last_mark_delete_advanced_ms=0,
            is_durable=False,
            allow_out_of_order=False,
            key_shared_mode="",
            mark_delete=self.mark_delete,
            read_at=0,
            consumers=consumers_stats(consumers, dispatcher, only),
        )

    def check(self) -> None:
        """Assert that nothing is remembered; for tests."""
        dispatcher = self.dispatcher
        assert dispatcher is None or (not dispatcher.unacked and not dispatcher.in_replay)
        if dispatcher is not None and self._members.by_state:
            dispatcher.check()
