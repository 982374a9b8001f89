"""A subscription: cursor, dispatcher and connections joined.

Lives on the event loop of its topic; every method returns at once. What comes in (consumers, permits, acknowledgements,
appended entries) goes to the dispatcher, whose instructions are carried out here, and to the :class:`Pump`, which reads
and sends; acknowledgements come by way of :class:`Acknowledgements`. A connection never calls back from within a call.
The only timer is the activation delay of Failover (rule 5.4.6); the pump has another one for reads that failed.

Ids are ordinals: the connection converts, and must drop the id of an entry that does not exist rather than snap it
(5.7.4).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.delivery.dispatchers.exclusive import SingleActiveConsumer
from magnetar.broker.delivery.dispatchers.failover import Failover
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.delivery.dispatchers.shared_chunks import ChunkInfo, SharedChunks
from magnetar.broker.delivery.instructions import ActiveChange, Do, Instruction
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchFilter, DispatchRule
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import check_joins, make_dispatcher
from magnetar.broker.topic.dispatch.pump import Pump
from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.ports import ConsumerConnection, Done, Log, SubscriptionCursor, notify
from magnetar.broker.topic.subscription.acknowledgements import Acknowledgements
from magnetar.broker.topic.subscription.progress import Progress, progress, should_send
from magnetar.broker.topic.subscription.subscription_stats import SubscriptionStats, Totals, consumers_stats
from magnetar.broker.topic.subscription.transactional_acks import TransactionalAcks
from magnetar.model.errors import ConsumerBusyError, MagnetarError, MetadataError, ServiceNotReadyError
from magnetar.model.subscription_types import AUTO_SPLIT, KeySharedMeta, SubType
from magnetar.runtime.clock import Clock

log = logging.getLogger(__name__)


class TopicIdentity(NamedTuple):
    """What the choice of an active consumer depends on (5.4.1, 5.4.2)."""

    name: str
    partition: int = -1


class Subscription:
    """``created``: the cursor was made with it; ``terminated``: the topic was when this was loaded (5.9.11)."""

    dropped = 0
    """Messages that passed it by: none, what is stored waits."""

    def __init__(
        self,
        topic: TopicIdentity,
        name: str,
        log: Log,
        cursor: SubscriptionCursor,
        settings: DispatchSettings,
        clock: Clock,
        sticky_key: Callable[[bytes], bytes],
        *,
        durable: bool = True,
        created: bool = True,
        terminated: bool = False,
    ) -> None:
        self.topic = topic
        self.name = name
        self.log = log
        """What consumers read; see :meth:`read_through`."""
        self.stored = log
        """The topic's log itself."""
        self.cursor = cursor
        self.settings = settings
        self.durable = durable
        self.sub_type: SubType | None = None
        """None before the first consumer; the last type while there is none (5.1.1)."""
        self.key_shared = AUTO_SPLIT
        self.terminated = terminated
        self.totals = Totals()
        self._clock = clock
        self._pump = Pump(f"{topic.name}/{name}", log, cursor, settings, clock, sticky_key)
        parts_count = settings.acknowledgment_at_batch_index_level_enabled
        self.acks = Acknowledgements(self._pump, cursor, clock, self._mark_moved, parts_count=parts_count)
        self._activation: asyncio.TimerHandle | None = None
        self._mark = cursor.mark_delete
        self._end_told = terminated and not created and cursor.backlog() == 0
        self._seeking = False
        self.closed = False

    # -- members -----------------------------------------------------------------------------------------------

    @property
    def consumers(self) -> list[Consumer]:
        """In join order."""
        return list(self._pump.consumers.values())

    @property
    def mark_delete(self) -> int:
        """Every ordinal up to this one is acknowledged."""
        return self.cursor.mark_delete

    @property
    def dispatcher(self) -> Dispatcher | None:
        return self._pump.dispatcher

    @property
    def active_consumer(self) -> Consumer | None:
        """Of Exclusive and Failover: who is served. The connection pings it before a newcomer is refused (5.3.1)."""
        dispatcher = self._pump.dispatcher
        if isinstance(dispatcher, SingleActiveConsumer) and dispatcher.active is not None:
            return self._pump.consumers[dispatcher.active]
        return None

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
        meta = key_shared or AUTO_SPLIT
        pump = self._pump
        dispatcher = pump.dispatcher
        limit = self.settings.max_consumers_per_subscription
        if dispatcher is None or not pump.consumers:
            chunks = pump.chunk_of is not None
            dispatcher = make_dispatcher(sub_type, meta, self.settings, self.topic.name, self.topic.partition, chunks)
        elif self.sub_type is not None:
            check_joins(self.sub_type, self.key_shared, sub_type, meta)
        if limit and len(pump.consumers) >= limit:
            raise ConsumerBusyError("Subscription reached max consumers limit")
        state = ConsumerState(name, connection, priority, meta.hash_ranges or None)
        state.description = (
            f"Consumer{{subscription={self.name}, consumerId={consumer_id}, consumerName={name}, "
            f"topic={self.topic.name}}}"
        )
        instructions = dispatcher.add(state)
        consumer = Consumer(state, connection, consumer_id, epoch, info or {})
        pump.consumers[state] = consumer
        if pump.dispatcher is not dispatcher:
            pump.dispatcher = dispatcher
            self.sub_type, self.key_shared = sub_type, meta
            if pump.dispatch_filter is not None:
                pump.dispatch_filter.choose(sub_type)
        self._perform(instructions)
        pump.turn()
        return consumer

    def read_through(self, source: Log) -> None:
        """While nobody is connected: what the next consumers read, the log itself or its compacted view (5.9.13)."""
        if source is not self.log and not self._pump.consumers:
            self.log = source
            self._pump.read_through(source)

    def remove_consumer(self, consumer: Consumer) -> None:
        """It left or its connection was lost: what it did not acknowledge goes to the others (5.9.14, 5.4.8)."""
        if self._leave(consumer):
            self._pump.turn()

    def _leave(self, consumer: Consumer) -> bool:
        dispatcher = self._pump.dispatcher
        if dispatcher is None or consumer.state not in self._pump.consumers:
            return False
        instructions = dispatcher.remove(consumer.state)
        del self._pump.consumers[consumer.state]
        self.totals.add(consumer)
        self._perform(instructions)
        return True

    def _perform(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, ActiveChange):
                self._pump.consumers[instruction.consumer].connection.active_change(instruction.active)
            elif instruction is Do.REWIND:
                self._pump.rewind()
            elif instruction is Do.ARM:
                delay_s = self.settings.active_consumer_failover_delay_ms / 1000
                self._activation = asyncio.get_running_loop().call_later(delay_s, self._activate)
            else:
                self._disarm()

    def _activate(self) -> None:
        self._activation = None
        if isinstance(self._pump.dispatcher, Failover):
            self._perform(self._pump.dispatcher.activate())
            self._pump.turn()

    def _disarm(self) -> None:
        if self._activation is not None:
            self._activation.cancel()
            self._activation = None

    def has_chunks(self, chunk_of: Callable[[bytes], ChunkInfo | None]) -> None:
        """The topic has chunked messages, or may have from now on (3.6)."""
        pump = self._pump
        pump.chunk_of = chunk_of
        if type(pump.dispatcher) is Shared:
            pump.dispatcher = SharedChunks.of(pump.dispatcher)

    def set_settings(self, settings: DispatchSettings) -> None:
        """A policy changed a limit; who is above it now keeps what it has."""
        self.settings = settings
        self.acks.parts_count = settings.acknowledgment_at_batch_index_level_enabled
        dispatcher = self._pump.dispatcher
        if dispatcher is not None:
            dispatcher.set_limits(settings.limits())
            self._pump.turn()

    # -- flow --------------------------------------------------------------------------------------------------

    def flow(self, consumer: Consumer, permits: int) -> None:
        """FLOW; the connection has refused ``permits`` below 1 (5.2.1)."""
        dispatcher = self._pump.dispatcher
        if dispatcher is None or consumer.state not in self._pump.consumers:
            return
        consumer.last_flow_ms = self._clock.now_ms()
        dispatcher.flow(consumer.state, permits)
        self._pump.turn()
        if self.terminated:
            self._check_end()

    def entries_appended(self) -> None:
        """``log.end`` moved; call once per group of entries."""
        self._pump.turn()

    # -- gate: what is not to be sent, or not yet ----------------------------------------------------------------

    def add_dispatch_rule(self, reason: DispatchRule) -> None:
        """Ask ``reason`` before anything is read, from now on.

        See :mod:`magnetar.broker.topic.dispatch.dispatch_filter`.
        """
        pump = self._pump
        if pump.dispatch_filter is None:
            pump.dispatch_filter = DispatchFilter()
            pump.on_acknowledged = self._mark_may_have_moved
        pump.dispatch_filter.add(reason, self.sub_type)

    def remove_dispatch_rule(self, reason: DispatchRule) -> None:
        """``reason`` has nothing to say any more; what it kept closed must have been let through before."""
        dispatch_filter = self._pump.dispatch_filter
        if dispatch_filter is not None:
            dispatch_filter.remove(reason, self.sub_type)
        self._pump.turn()

    def dispatch_filter_changed(self) -> None:
        """More may be read, or entries became dead."""
        self._pump.turn()

    def let_through(self, ordinals: Iterable[int], reason: DispatchRule | None = None) -> None:
        """These entries are open now and are sent, in this order, unless they are acknowledged.

        ``reason``: who had closed them; nothing happens if it does not hold for this type.

        Those that a consumer has are taken from it without counting a redelivery; what the pump has not reached
        yet it will find by itself.
        """
        pump = self._pump
        dispatcher, dispatch_filter = pump.dispatcher, pump.dispatch_filter
        if (
            dispatcher is None
            or dispatch_filter is None
            or not pump.consumers
            or (reason and not dispatch_filter.obeys(reason))
        ):
            return
        read_at, cursor = pump.read_at, self.cursor
        passed = [ordinal for ordinal in ordinals if ordinal < read_at and not cursor.acknowledged(ordinal)]
        dispatch_filter.late.extend(dispatcher.take_back(passed))
        pump.turn()

    @property
    def in_order(self) -> bool:
        """Exclusive or Failover: a cumulative acknowledgement means something (5.5.6)."""
        return isinstance(self._pump.dispatcher, SingleActiveConsumer)

    def transactional(self) -> TransactionalAcks:
        """What transactions do with entries of this subscription."""
        return TransactionalAcks(self._pump, self.cursor, self._mark_may_have_moved)

    def resume(self, consumer: Consumer) -> None:
        """The consumer's socket drained below its low-water mark."""
        self._pump.turn()

    # -- what needs no consumer any more -----------------------------------------------------------------------

    def skip_until(self, ordinal: int, durable: Done | None = None) -> None:
        """Expiry and REST skip: everything up to ``ordinal`` needs no consumer any more."""
        self.cursor.acknowledge_until(ordinal, durable)
        dispatcher = self._pump.dispatcher
        if dispatcher is not None:
            dispatcher.acknowledged_until(ordinal)
            for state in self._pump.consumers:
                dispatcher.acknowledged(state, [pending for pending in state.pending if pending <= ordinal])
        self._mark_moved(self._clock.now_ms())
        self._pump.turn()

    def expire_until(self, ordinal: int) -> int:
        """Time to live or a quota: nobody gets what lies before; how many entries that were (4.5.2)."""
        before = self.cursor.backlog()
        self.skip_until(ordinal)
        expired = before - self.cursor.backlog()
        self.totals.expired += expired
        self.totals.last_expired_ms = self._clock.now_ms()
        return expired

    def trimmed(self) -> None:
        """The log lost its front: a non-durable cursor there goes on behind it (4.3.2)."""
        if self.cursor.mark_delete < self.log.first - 1:
            self.cursor.trimmed()
        self._pump.turn()

    def _mark_may_have_moved(self) -> None:
        self._mark_moved(self._clock.now_ms())

    def _mark_moved(self, now_ms: int) -> None:
        mark = self.cursor.mark_delete
        if mark != self._mark:
            self._mark = mark
            self.totals.last_mark_delete_advanced_ms = now_ms
            if self.terminated:
                self._check_end()

    # -- redelivery --------------------------------------------------------------------------------------------

    def redeliver(self, consumer: Consumer, ordinals: Sequence[int] | None, epoch: int | None = None) -> None:
        """REDELIVER of these entries or, None, of everything the consumer has (5.8.1, 5.8.2)."""
        dispatcher = self._pump.dispatcher
        if dispatcher is None or consumer.state not in self._pump.consumers:
            return
        if epoch is not None:
            consumer.epoch = epoch
        self._perform(dispatcher.redeliver(consumer.state, ordinals))
        self._pump.turn()

    # -- seek, unsubscribe, end --------------------------------------------------------------------------------

    def seek_to(
        self, ordinal: int, durable: Done | None = None, ack_set: tuple[int, ...] = (), batch_size: int = 0
    ) -> None:
        """``ordinal`` is the next to be delivered; consumers are disconnected first (5.9.1, 5.9.3, 5.9.6).

        A Failover stand-by stays. Raises while an earlier seek is not durable (5.9.5), and when the topic was unloaded
        while the place was searched: the cursor has another subscription by now. Whatever fails, later seeks are free.
        """
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        if self._seeking:
            raise MagnetarError("Error when resetting subscription: Failed to fence subscription")
        left = self._pump.sizes.remaining(ordinal, ack_set, batch_size) if ack_set else None

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
        self._mark = self.cursor.mark_delete
        self._end_told = False
        self._pump.rewind()
        self._pump.turn()

    def check_unsubscribe(self, consumer: Consumer, *, force: bool = False) -> None:
        """Whether this consumer may delete the subscription; with ``force`` the others are disconnected (5.9.9)."""
        others = [other for other in self.consumers if other is not consumer]
        if force:
            self._disconnect(others)
        elif others or consumer.state not in self._pump.consumers:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")

    def topic_terminated(self) -> None:
        """No entry will follow."""
        self.terminated = True
        if self._pump.consumers:
            self._check_end()

    def _check_end(self) -> None:
        """Terminated and nothing left, acknowledgements included: said once (5.9.11)."""
        if not self._end_told and self.cursor.backlog() == 0:
            self._end_told = True
            for consumer in self.consumers:
                consumer.connection.end_of_topic()

    def disconnect_all(self) -> None:
        """CLOSE_CONSUMER to everybody."""
        self._disconnect(self.consumers)

    def close(self) -> None:
        """Unload or delete: everybody is disconnected, nothing runs any more."""
        self.closed = True
        self._disconnect(self.consumers)
        self._disarm()
        self._pump.close()

    def _disconnect(self, consumers: list[Consumer]) -> None:
        for consumer in consumers:
            if self._leave(consumer):
                try:
                    consumer.connection.close()
                except Exception:
                    log.exception("subscription %s: a consumer could not be told that it is closed", self.name)

    # -- looking in ------------------------------------------------------------------------------------------------

    @property
    def dispatch_filter(self) -> DispatchFilter | None:
        return self._pump.dispatch_filter

    @property
    def reading(self) -> bool:
        """Whether the disk was asked and has not answered."""
        return self._pump.reading

    @property
    def read_trouble(self) -> str:
        """Why reading fails; "" while it does not."""
        return self._pump.trouble

    @property
    def unreadable(self) -> UnreadableRanges:
        """What of the backlog is damaged on disk, and what was skipped for that."""
        return self._pump.unreadable

    def skip_unreadable(self) -> int:
        """Damaged entries in front are not waited for any more; how many."""
        skipped = self._pump.skip_unreadable()
        self._mark_may_have_moved()
        return skipped

    def next_ahead(self) -> int | None:
        """The next new entry that may be sent."""
        return self._pump.next_ahead()

    def progress(self) -> Progress:
        """Changes whenever something happens."""
        return progress(self._pump, self.cursor)

    def should_send(self) -> str:
        """Why it ought to be sending now; "" if it need not (:mod:`magnetar.broker.topic.subscription.progress`)."""
        return should_send(self._pump, self.cursor)

    def heal(self, *, firmly: bool) -> None:
        """It stands still and should not: try again; ``firmly``: everybody connects anew, and it starts afresh."""
        if firmly:
            self._disconnect(self.consumers)
        self._pump.restart()

    # -- statistics --------------------------------------------------------------------------------------------

    def counters(self) -> Totals:
        """What has gone out since the topic was loaded; a copy."""
        return self.totals.with_those(self.consumers)

    def delayed_entries(self) -> int:
        """Of the backlog, what waits for its time (7.8)."""
        dispatch_filter = self._pump.dispatch_filter
        return (
            dispatch_filter.delayed(self.cursor, self.log.end) if dispatch_filter and self.sub_type is not None else 0
        )

    def stats(self, only: Consumer | None = None) -> SubscriptionStats:
        """All values of 5.10 that are ours, as of now; with ``only`` of that consumer alone, without its keys."""
        consumers, dispatcher = self.consumers, self._pump.dispatcher
        totals = self.counters()
        active = self.active_consumer
        key_shared = self.sub_type is SubType.Key_Shared
        return SubscriptionStats(
            type="None" if self.sub_type is None else self.sub_type.name,
            backlog_entries=self.cursor.backlog(),
            delayed_entries=self.delayed_entries(),
            unacked_messages=dispatcher.unacked if dispatcher else 0,
            in_replay=dispatcher.in_replay if dispatcher else 0,
            blocked_on_unacked=dispatcher.blocked if dispatcher else False,
            active_consumer_name=active.name if active else "",
            entries_out=totals.entries_out,
            messages_out=totals.messages_out,
            bytes_out=totals.bytes_out,
            messages_redelivered=totals.messages_redelivered,
            acked_entries=totals.acked_entries,
            expired=totals.expired,
            last_expired_ms=totals.last_expired_ms,
            jumped=self.cursor.jumped,
            last_flow_ms=totals.last_flow_ms,
            last_sent_ms=totals.last_sent_ms,
            last_acked_ms=totals.last_acked_ms,
            last_mark_delete_advanced_ms=totals.last_mark_delete_advanced_ms,
            is_durable=self.durable,
            allow_out_of_order=key_shared and self.key_shared.allow_out_of_order_delivery,
            key_shared_mode=self.key_shared.mode.name if key_shared else "",
            mark_delete=self.cursor.mark_delete,
            read_at=max(self._pump.read_at, self.cursor.mark_delete + 1),
            consumers=consumers_stats(consumers, dispatcher, only),
        )
