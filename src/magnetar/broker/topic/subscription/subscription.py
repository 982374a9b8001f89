"""A subscription: cursor, dispatcher and connections joined.

Lives on the event loop of its topic; every method returns at once. What comes in (consumers, permits, acknowledgements,
appended entries) goes to the dispatcher, whose instructions are carried out here, and to the :class:`Pump`, which reads
and sends; acknowledgements come by way of :class:`Acknowledgements`. A connection never calls back from within a call.
The only timer is the activation delay of Failover (rule 5.4.6); the pump has another one for reads that failed.

Ids are ordinals: the connection converts, and must drop the id of an entry that does not exist rather than snap it
(rule 5.7.4).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.delivery.dispatchers.shared_chunks import ChunkInfo, SharedChunks
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchFilter, DispatchRule
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.dispatch.members import Members
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.ports import ConsumerConnection, Done, Log, SubscriptionCursor, notify
from magnetar.broker.topic.subscription.acknowledgements import Acknowledgements
from magnetar.broker.topic.subscription.active_consumer import ActiveConsumerSwitch
from magnetar.broker.topic.subscription.mark_delete_watch import MarkDeleteWatch
from magnetar.broker.topic.subscription.progress import Progress, progress, should_send
from magnetar.broker.topic.subscription.subscription_stats import SubscriptionStats, Totals, subscription_stats
from magnetar.broker.topic.subscription.transactional_acks import TransactionalAcks
from magnetar.broker.topic.throughput import UNSEEN, Pace
from magnetar.model.errors import MagnetarError, MetadataError, ServiceNotReadyError
from magnetar.model.subscription_types import KeySharedMeta, SubType
from magnetar.runtime.clock import Clock

log = logging.getLogger(__name__)


class Subscription:
    """``created``: the cursor was made with it; ``terminated``: the topic was when this was loaded (rule 5.9.11)."""

    __slots__ = (
        "_clock", "_members", "_seeking", "_switch", "_watch", "acks", "closed", "cursor", "durable", "log", "name",
        "pace", "pump", "settings", "topic", "topic_log", "totals",
    )  # fmt: skip

    dropped = 0
    """Messages that passed it by: none, what is stored waits."""

    def __init__(
        self, topic: TopicIdentity, name: str, log: Log, cursor: SubscriptionCursor, settings: DispatchSettings,
        clock: Clock, sticky_keys: Callable[[Sequence[bytes]], list[bytes]], *, durable: bool = True,
        created: bool = True, terminated: bool = False,
    ) -> None:  # fmt: skip
        self.topic = topic
        self.name = name
        self.log = self.topic_log = log
        """What consumers read, see :meth:`read_through`; ``topic_log`` is always the topic's own."""
        self.cursor = cursor
        self.settings = settings
        self.durable = durable
        self.totals = Totals()
        self.pace: Pace = UNSEEN
        self._clock = clock
        self._members = members = Members(topic, name)
        self._watch = MarkDeleteWatch(cursor, members, self.totals, clock, created=created, terminated=terminated)
        self.pump = Pump(log, cursor, settings, clock, sticky_keys, members)
        parts_count = settings.acknowledgment_at_batch_index_level_enabled
        self.acks = Acknowledgements(self.pump, cursor, clock, self._watch.moved, parts_count=parts_count)
        self._switch = ActiveConsumerSwitch(self.pump, settings)
        self._seeking = False
        self.closed = False

    # -- members -----------------------------------------------------------------------------------------------

    @property
    def consumers(self) -> list[Consumer]:
        """The consumers in join order."""
        return self._members.consumers

    @property
    def sub_type(self) -> SubType | None:
        """None before the first consumer; the last type while there is none (rule 5.1.1)."""
        return self._members.sub_type

    @sub_type.setter
    def sub_type(self, sub_type: SubType) -> None:
        self._members.sub_type = sub_type

    @property
    def key_shared(self) -> KeySharedMeta:
        """How Key_Shared divides its keys, as the first consumer asked."""
        return self._members.key_shared

    @property
    def terminated(self) -> bool:
        """Whether no entry will follow."""
        return self._watch.terminated

    @property
    def mark_delete(self) -> int:
        """Every ordinal up to this one is acknowledged."""
        return self.cursor.mark_delete

    @property
    def dispatcher(self) -> Dispatcher | None:
        return self._members.dispatcher

    @property
    def active_consumer(self) -> Consumer | None:
        """The consumer that Exclusive and Failover serve; it is pinged before a newcomer is refused (rule 5.3.1)."""
        return self._members.active

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
        members, pump = self._members, self.pump
        before = members.dispatcher
        consumer, instructions = members.join(
            connection, self.settings, name=name, consumer_id=consumer_id, sub_type=sub_type, priority=priority,
            key_shared=key_shared, epoch=epoch, info=info, chunks=pump.sender.chunk_of is not None,
        )  # fmt: skip
        if members.dispatcher is not before and pump.dispatch_filter is not None:
            pump.dispatch_filter.choose(sub_type)
        self.cursor.attended = True
        self._switch.perform(instructions)
        pump.turn()
        return consumer

    def read_through(self, source: Log) -> None:
        """Choose what the next consumers read, while none is connected.

        The log itself or its compacted view (rule 5.9.13), which may be another one than when it was read last.
        """
        if not self._members.by_state and (source is not self.log or source is not self.topic_log):
            self.log = source
            self.pump.read_through(source)

    def remove_consumer(self, consumer: Consumer, *, lost: bool = False) -> None:
        """It left or its connection was lost: what it did not acknowledge goes to the others (rules 5.9.14, 5.4.8)."""
        if lost and consumer.entries_out and (rule := self.pump.reads.suspect(self.pump.read_at)) is not None:
            self.add_dispatch_rule(rule)
        if self._leave(consumer):
            self.pump.turn()

    def _leave(self, consumer: Consumer) -> bool:
        instructions = self._members.leave(consumer)
        if instructions is None:
            return False
        self.totals.add(consumer)
        self.cursor.attended = bool(self._members.by_state)
        self._switch.perform(instructions)
        return True

    def has_chunks(self, chunk_of: Callable[[bytes], ChunkInfo | None]) -> None:
        """The topic has chunked messages, or may have from now on (rule 3.6)."""
        self.pump.sender.chunk_of = chunk_of
        dispatcher = self._members.dispatcher
        if type(dispatcher) is Shared:
            self._members.dispatcher = SharedChunks.of(dispatcher)

    def set_settings(self, settings: DispatchSettings) -> None:
        """A policy or setting changed a limit; a consumer above it keeps what it has."""
        self.settings = settings
        self.pump.take_settings(settings)
        self.acks.parts_count = settings.acknowledgment_at_batch_index_level_enabled
        dispatcher = self._members.dispatcher
        if dispatcher is not None:
            dispatcher.set_limits(settings.limits())
            self.pump.turn()

    # -- flow --------------------------------------------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """FLOW; the connection has refused ``permits`` below 1 (rule 5.2.1)."""
        dispatcher = self._members.dispatcher
        if dispatcher is None or consumer.state not in self._members.by_state:
            return
        consumer.last_flow_ms = self._clock.now_ms()
        dispatcher.flow(consumer.state, permits)
        self.pump.turn()
        if self._watch.terminated:
            self._watch.check_end()

    def entries_appended(self) -> int:
        """``log.end`` moved; call once per group of entries. The number of entries that it dealt with."""
        return self.pump.turn()

    # -- dispatch filter: what is not to be sent, or not yet -------------------------------------------------------

    def add_dispatch_rule(self, rule: DispatchRule) -> None:
        """Ask ``rule`` before anything is read, from now on.

        See :mod:`magnetar.broker.topic.dispatch.dispatch_filter`.
        """
        pump = self.pump
        if pump.dispatch_filter is None:
            pump.dispatch_filter = DispatchFilter()
            pump.on_acknowledged = self._watch.moved_now
        pump.dispatch_filter.add(rule, self.sub_type)

    def remove_dispatch_rule(self, rule: DispatchRule) -> None:
        """``rule`` is asked no more; what it kept closed must have been let through before."""
        dispatch_filter = self.pump.dispatch_filter
        if dispatch_filter is not None:
            dispatch_filter.remove(rule, self.sub_type)
        self.pump.turn()

    def let_through(self, ordinals: Iterable[int], rule: DispatchRule | None = None) -> None:
        """These entries are open now; see :meth:`Pump.let_through`."""
        self.pump.let_through(ordinals, rule)

    @property
    def in_order(self) -> bool:
        """Exclusive or Failover: a cumulative acknowledgement means something (rule 5.5.6)."""
        return isinstance(self._members.dispatcher, SingleActiveConsumer)

    def transactional(self) -> TransactionalAcks:
        """What transactions do with entries of this subscription."""
        return TransactionalAcks(self.pump, self.cursor, self._watch.moved_now)

    def resume(self, consumer: Consumer) -> None:
        """The consumer's socket drained below its low-water mark."""
        self.pump.turn()

    # -- what needs no consumer any more -----------------------------------------------------------------------

    def skip_until(self, ordinal: int, durable: Done | None = None) -> None:
        """Expiry and REST skip: everything up to ``ordinal`` needs no consumer any more."""
        self.cursor.acknowledge_until(ordinal, durable)
        if (dispatcher := self._members.dispatcher) is not None:
            dispatcher.acknowledged_until(ordinal)
            for state in self._members.by_state:
                dispatcher.acknowledged(state, [pending for pending in state.pending if pending <= ordinal])
        self._watch.moved_now()
        self.pump.turn()

    def expire_until(self, ordinal: int) -> int:
        """Time to live or a quota: no consumer gets what lies before; how many entries that were (rule 4.5.2)."""
        before = self.cursor.backlog()
        self.skip_until(ordinal)
        expired = before - self.cursor.backlog()
        self.totals.expired += expired
        self.totals.last_expired_ms = self._clock.now_ms()
        return expired

    def trimmed(self) -> None:
        """The log lost its front: a non-durable cursor there goes on after it (rule 4.3.2)."""
        if self.cursor.mark_delete < self.log.first - 1:
            self.cursor.trimmed()
        self.pump.turn()

    # -- redelivery --------------------------------------------------------------------------------------------

    def redeliver(self, consumer: Consumer, ordinals: Sequence[int] | None, epoch: int | None = None) -> None:
        """REDELIVER of these entries or, None, of everything the consumer has (rules 5.8.1, 5.8.2)."""
        dispatcher = self._members.dispatcher
        if dispatcher is None or consumer.state not in self._members.by_state:
            return
        if epoch is not None:
            consumer.epoch = epoch
        self._switch.perform(dispatcher.redeliver(consumer.state, ordinals))
        self.pump.turn()

    # -- seek, unsubscribe, end --------------------------------------------------------------------------------

    def seek_to(
        self, ordinal: int, durable: Done | None = None, ack_set: tuple[int, ...] = (), batch_size: int = 0
    ) -> None:
        """``ordinal`` is the next to be delivered; consumers are disconnected first (rules 5.9.1, 5.9.3, 5.9.6).

        A Failover stand-by stays. Raises while an earlier seek is not durable (rule 5.9.5), and when the topic was
        unloaded while the place was searched: the cursor has another subscription by now. Whatever fails, later seeks
        are free.
        """
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        if self._seeking:
            raise MagnetarError("Error when resetting subscription: Failed to fence subscription")
        left = self.pump.sizes.remaining(ordinal, ack_set, batch_size) if ack_set else None

        def finished() -> None:
            self._seeking = False
            notify(durable)

        self._seeking = True
        try:
            active = self.active_consumer
            self._disconnect([active] if active is not None else self.consumers)
            if left is None:
                self.cursor.reset(ordinal, finished)
            else:
                self.cursor.reset(ordinal, None)
                self.cursor.acknowledge_indexes(ordinal, left.words, left.size, finished)
        except BaseException:
            self._seeking = False
            raise
        self._watch.sought()
        self.pump.reads.sought()
        self.pump.rewind()
        self.pump.turn()

    def check_unsubscribe(self, consumer: Consumer, *, force: bool = False) -> None:
        """Whether this consumer may delete the subscription; ``force`` disconnects the others (rule 5.9.9)."""
        others = [other for other in self.consumers if other is not consumer]
        if force:
            self._disconnect(others)
        elif others or consumer.state not in self._members.by_state:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")

    def topic_terminated(self) -> None:
        """No entry will follow."""
        self._watch.terminate()

    def disconnect_all(self) -> None:
        """Send CLOSE_CONSUMER to every consumer."""
        self._disconnect(self.consumers)

    def close(self) -> None:
        """Unload or delete: every consumer is disconnected, nothing runs any more."""
        self.closed = True
        self._disconnect(self.consumers)
        self._switch.disarm()
        self.pump.close()

    def _disconnect(self, consumers: list[Consumer]) -> None:
        for consumer in consumers:
            if self._leave(consumer):
                try:
                    consumer.connection.close()
                except Exception:
                    text = "subscription %s: a consumer could not be notified that it is closed"
                    log.exception(text, self.name, extra={"topic": self.topic.name, "subscription": self.name})

    # -- looking in ------------------------------------------------------------------------------------------------

    @property
    def dispatch_filter(self) -> DispatchFilter | None:
        return self.pump.dispatch_filter

    @property
    def unreadable(self) -> UnreadableRanges:
        """What of the backlog is damaged on disk, and what was skipped for that."""
        return self.pump.unreadable

    def skip_unreadable(self) -> int:
        """Skip the damaged entries that are next; how many."""
        skipped = self.pump.skip_unreadable()
        self._watch.moved_now()
        return skipped

    def progress(self) -> Progress:
        """Changes whenever something happens."""
        return progress(self.pump, self.cursor)

    def should_send(self) -> str:
        """Why it ought to be sending now; "" if it need not (:mod:`magnetar.broker.topic.subscription.progress`)."""
        return should_send(self.pump, self.cursor)

    def heal(self, *, firmly: bool) -> None:
        """It stands still and should not: try again; ``firmly``: every consumer connects anew, and it starts afresh."""
        if firmly:
            self._disconnect(self.consumers)
        self.pump.restart()

    # -- statistics --------------------------------------------------------------------------------------------

    def counters(self) -> Totals:
        """What has gone out since the topic was loaded; a copy."""
        return self.totals.with_those(self.consumers)

    def delayed_entries(self) -> int:
        """Entries of the backlog that wait for their time (rule 7.8)."""
        return self.pump.delayed() if self.sub_type is not None else 0

    def stats(self, only: Consumer | None = None) -> SubscriptionStats:
        """The statistics as of now (rules of 5.10); with ``only``, of that consumer alone and without its keys."""
        return subscription_stats(
            self._members, self.counters(), self.cursor, only, delayed=self.delayed_entries(), durable=self.durable,
            read_at=max(self.pump.read_at, self.cursor.mark_delete + 1),
        )  # fmt: skip
