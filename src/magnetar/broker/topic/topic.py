"""One topic: its log, its producers, its subscriptions.

Order is fixed when an entry is appended; everything else happens once per group commit: receipts to the producers,
then one notice to every subscription that there is more (STYLE rules 6 and 7).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Final, cast

from magnetar.broker.topic.cleanup.backlog_quotas import BacklogQuotas
from magnetar.broker.topic.cleanup.termination import INTERNAL_PREFIXES, Termination
from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.dispatch.delays import Delays
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule, last_visible
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.limits import check_consumer, check_subscription, with_policies
from magnetar.broker.topic.ports import DurableAnswer, Log, SentTotals
from magnetar.broker.topic.position_search import first_since
from magnetar.broker.topic.publish.chunking import Chunking, chunk
from magnetar.broker.topic.publish.producer import PendingEntry, Producer
from magnetar.broker.topic.publish.producers import Admitted, Producers
from magnetar.broker.topic.publish.publish_checks import PublishChecks, PublishSettings
from magnetar.broker.topic.publish.topic_epoch import LogEpoch
from magnetar.broker.topic.subscription.subscription import Subscription, TopicIdentity
from magnetar.broker.topic.topic_api import SubscriptionApi
from magnetar.broker.topic.transactions.topic_transactions import TopicTransactions
from magnetar.compaction.compaction_cursor import COMPACTION_SUBSCRIPTION
from magnetar.model.cursor_properties import REPLICATED, is_replicated
from magnetar.model.errors import NotAllowedError, PersistenceError, ServiceNotReadyError
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.names import TopicName
from magnetar.model.policies import Retention
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.entries import sticky_key
from magnetar.runtime.clock import Clock
from magnetar.runtime.teardown import call_all
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.log.write_group import PendingExtent
from magnetar.storage.store import LedgerStore
from magnetar.transactions.feature_state import TRANSACTIONS

log = logging.getLogger(__name__)

_NO_RETENTION: Final = Retention(0, 0)

PolicyListener = Callable[[TopicPolicies, TopicPolicies], None]


class Topic:
    """A loaded topic; lives on the event loop."""

    def __init__(
        self, name: TopicName, store: LedgerStore, settings: DispatchSettings, clock: Clock, rng: Random,
        policies: TopicPolicies, publishing: PublishSettings | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.policies = policies
        """What holds for this topic now (decision 006); replaced, never changed."""
        self.policy_listeners: list[PolicyListener] = []
        """Features that have to act when policies change: called with what held before and what holds now."""
        self.clock = clock
        self._broker_settings = settings
        self._settings = with_policies(settings, policies)
        self._rng = rng
        self._identity = TopicIdentity(name.fqn, name.partition_index)
        self.subscriptions: dict[str, Subscription] = {}
        self.closed = False
        self.msg_in = 0
        self.bytes_in = 0
        self._sent_before = SentTotals(0, 0)
        """By subscriptions that are gone."""
        self.dispatch_rules: tuple[DispatchRule, ...] = ()
        """What all subscriptions ask before they send; see :mod:`magnetar.broker.topic.dispatch.dispatch_filter`."""
        self._birth: list[DurableAnswer] | None = []
        self.log = store.open_log(name.fqn, self._born, self._not_born)
        self.producers = Producers(name.fqn, LogEpoch(self.log))
        self.checks = PublishChecks(
            name.fqn, self.producers, policies, clock, publishing or PublishSettings(), self.log
        )
        self.policy_listeners.append(lambda before, now: self.checks.policies_changed(now))
        self.log.on_durable = self._durable
        self.log.on_failed = self._failed
        self.log.on_group = self._group
        self.chunking = Chunking(self.log, self._has_chunks)
        self.loaded_ms = clock.now_ms()
        self.quotas = BacklogQuotas(self)
        self.termination = Termination(self)
        for cursor in list(self.log.cursors.values()):
            self._attach(cursor, durable=True, created=False)
        self.transactions: TopicTransactions | None = None
        """None: the topic never took part in one."""
        if TRANSACTIONS in self.log.feature_states:
            self.transacting()
        self._store = store
        self.compactor: Compactor | None = (
            Compactor(self, store) if COMPACTION_SUBSCRIPTION in self.log.cursors else None
        )
        """None while the topic has nothing to do with compaction."""
        self.policy_listeners.append(self._compaction_policy)
        self._compaction_policy(policies, policies)
        strict = settings.deliver_at_time_strict
        self.delays = Delays(self, self.log, clock, policies.delayed_delivery, strict)

    # birth -------------------------------------------------------------------------------------------------------

    def when_durable(self, answer: DurableAnswer) -> None:
        """Answer when it is certain that the topic outlives a crash."""
        if self._birth is None:
            answer(None)
        else:
            self._birth.append(answer)

    def _born(self) -> None:
        waiting, self._birth = self._birth or [], None
        for answer in waiting:
            answer(None)

    def _not_born(self, error: PersistenceError) -> None:
        # the log writes its birth again with the first entry or cursor; until then nobody was told that it exists
        waiting, self._birth = self._birth or [], None
        for answer in waiting:
            answer(error)

    # producers ---------------------------------------------------------------------------------------------------

    def add_producer(self, producer: Producer, epoch: int | None, admitted: Admitted) -> bool:
        """See :meth:`Producers.admit`. Raises ServiceNotReadyError and MetadataError besides."""
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        self.termination.check_producer()
        self.quotas.check_producer()
        producer.append = self.delays.append
        self.checks.admit(producer)
        return self.producers.admit(producer, epoch, self.checks.limits(), admitted)

    def _durable(self, extent: PendingExtent) -> None:
        """Entries are on disk: a receipt for each, one call per stretch of one producer."""
        results = cast("list[PendingEntry]", extent.tags)
        counts = extent.counts
        n = len(results)
        self.msg_in += n if counts is None else sum(counts)
        self.bytes_in += extent.size
        start = 0
        while start < n:
            producer = results[start][0]
            stop = start + 1
            while stop < n and results[stop][0] is producer:
                stop += 1
            producer.msg_in += stop - start if counts is None else sum(counts[start:stop])
            producer.bytes_in += sum(map(len, extent.entries[start:stop])) if stop - start < n else extent.size
            if producer.open:
                producer.connection.receipts(extent.ledger, extent.entry + start, results[start:stop])
            else:
                producer.connection.dropped(stop - start)
            start = stop

    def _failed(self, extent: PendingExtent, error: PersistenceError) -> None:
        """The disk refused: errors for these entries, then every producer has to come again (rule 3.3.5)."""
        for result in cast("list[PendingEntry]", extent.tags):
            if result.producer.open:
                result.producer.connection.failed((result,), error)
            else:
                result.producer.connection.dropped(1)
        self.producers.close_all()

    def _group(self) -> None:
        for subscription in self.subscriptions.values():
            subscription.entries_appended()

    # subscriptions -----------------------------------------------------------------------------------------------

    def subscription(
        self, name: str, *, durable: bool, ordinal: Callable[[], int], properties: dict[str, str],
        done: Callable[[], None],
    ) -> Subscription:  # fmt: skip
        """The subscription of that name, made at ``ordinal()`` if missing; ``done`` when it is durable.

        Raises NotAllowedError if it exists with the other durability (rule 0.12) or there are too many (5.1.6).
        """
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        found = self.subscriptions.get(name)
        if found is not None:
            if found.durable != durable:
                kind = "Durable" if found.durable else "NonDurable"
                raise NotAllowedError(f"{kind} subscription with the same name already exists.")
            if durable:
                stored = self.log.cursors.get(name)
                if stored is not None and is_replicated(properties) and not is_replicated(stored.properties):
                    stored.set_properties({**stored.properties, **REPLICATED})
                self.log.barrier(done)
            else:
                done()
            return found
        if name != COMPACTION_SUBSCRIPTION:
            check_subscription(self.name.fqn, self.policies, len(self.subscriptions))
        cursor = self.log.open_cursor(name, ordinal(), durable=durable, properties=properties, done=done)
        return self._attach(cursor, durable=durable, created=True)

    def check_consumer(self, sub_type: SubType) -> None:
        """Whether one more consumer may come. Raises NotAllowedError, ConsumerBusyError (rules 5.1.5, 5.1.6)."""
        check_consumer(self.name.fqn, self.policies, sub_type, self.consumer_count())

    def create_subscription(
        self, name: str, ordinal: int, done: Callable[[], None] | None = None,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """A durable subscription without a consumer; ``done`` when it is durable."""
        told = dict(properties)
        self.subscription(name, durable=True, ordinal=lambda: ordinal, properties=told, done=done or _nothing)

    def _attach(self, cursor: Cursor, *, durable: bool, created: bool) -> Subscription:
        subscription = Subscription(
            self._identity, cursor.name, self.log, cursor, self._settings, self.clock, sticky_key,
            durable=durable, created=created, terminated=self.termination.terminated,
        )  # fmt: skip
        for reason in self.dispatch_rules:
            subscription.add_dispatch_rule(reason)
        if self.chunking.seen:
            subscription.has_chunks(chunk)
        self.subscriptions[cursor.name] = subscription
        return subscription

    def _has_chunks(self) -> None:
        for subscription in self.subscriptions.values():
            subscription.has_chunks(chunk)

    def add_dispatch_rule(self, reason: DispatchRule) -> None:
        """All subscriptions, those to come included, ask ``reason`` before they read."""
        self.dispatch_rules += (reason,)
        for subscription in self.subscriptions.values():
            subscription.add_dispatch_rule(reason)

    def remove_dispatch_rule(self, reason: DispatchRule) -> None:
        """As :meth:`Subscription.remove_dispatch_rule`, for all of them."""
        self.dispatch_rules = tuple(other for other in self.dispatch_rules if other is not reason)
        for subscription in self.subscriptions.values():
            subscription.remove_dispatch_rule(reason)

    def dispatch_filter_changed(self) -> None:
        """More may be read, or entries became dead."""
        for subscription in list(self.subscriptions.values()):
            subscription.dispatch_filter_changed()

    def let_through(self, ordinals: Sequence[int], reason: DispatchRule | None = None) -> None:
        """These entries are open now; as :meth:`Subscription.let_through`, for all subscriptions."""
        for subscription in list(self.subscriptions.values()):
            subscription.let_through(ordinals, reason)

    def transacting(self) -> TopicTransactions:
        """The topic's part in transactions (rules of group 9)."""
        if self.transactions is None:
            self.transactions = TopicTransactions(self.name.fqn, self.log, self, self.clock.now_ms)
        return self.transactions

    def consumer_gone(self, subscription: SubscriptionApi) -> None:
        """A consumer has left; a non-durable subscription goes with its last one (rule 4.3.2)."""
        if not subscription.durable and not subscription.consumers:
            if self.subscriptions.get(subscription.name) is subscription:
                del self.subscriptions[subscription.name]
                self._forget(subscription)
            subscription.close()

    def delete_subscription(self, name: str, done: Callable[[], None]) -> None:
        """Forget a subscription and its cursor; its consumers are disconnected."""
        subscription = self.subscriptions.pop(name)
        subscription.close()
        self._forget(subscription)
        if name == COMPACTION_SUBSCRIPTION and self.compactor is not None:
            self.compactor.forget()
        if subscription.durable:
            self.log.delete_cursor(name, done)
        else:
            done()

    def _forget(self, subscription: SubscriptionApi) -> None:
        if self.transactions is not None:
            self.transactions.forget(subscription.name)
        gone, before = subscription.counters(), self._sent_before
        self._sent_before = SentTotals(before.messages + gone.messages_out, before.bytes + gone.bytes_out)

    def sent(self) -> SentTotals:
        """Since the topic was loaded, by subscriptions that are gone too."""
        messages, size = self._sent_before
        for subscription in self.subscriptions.values():
            counted = subscription.counters()
            messages += counted.messages_out
            size += counted.bytes_out
        return SentTotals(messages, size)

    def durable_subscriptions(self) -> list[str]:
        """Names, in the order they were made."""
        return [name for name, subscription in self.subscriptions.items() if subscription.durable]

    def consumer_count(self) -> int:
        """Connected consumers of all subscriptions."""
        return sum(len(subscription.consumers) for subscription in self.subscriptions.values())

    # compaction --------------------------------------------------------------------------------------------------

    def _compaction_policy(self, before: TopicPolicies, now: TopicPolicies) -> None:
        if now.compaction_threshold > 0 and not self.closed and COMPACTION_SUBSCRIPTION not in self.subscriptions:
            self.compaction().prepare()

    def compaction(self) -> Compactor:
        """Made when it is first needed."""
        if self.compactor is None:
            self.compactor = Compactor(self, self._store)
        return self.compactor

    def read_by(self, subscription: SubscriptionApi, *, compacted: bool) -> None:
        """A consumer is about to join: the first one decides whether the subscription reads compacted (5.9.13)."""
        assert isinstance(subscription, Subscription)
        if compacted:
            subscription.read_through(self.compaction().source(subscription))
        elif subscription.log is not self.log:
            subscription.read_through(self.log)

    def reading_log(self, *, compacted: bool) -> Log:
        """The log itself or its compacted view."""
        return self.compaction().detached_source() if compacted else self.log

    def log_of(self, subscription: SubscriptionApi) -> Log:
        """What its consumers read."""
        assert isinstance(subscription, Subscription)
        return subscription.log

    # positions ---------------------------------------------------------------------------------------------------

    def find_time(
        self, publish_time_ms: int, done: Callable[[int | Exception], None], reader: SubscriptionApi | None = None
    ) -> None:
        """Ordinal of the first entry, of those that ``reader`` sees, published at or after that time (5.9.2)."""
        log = self.log if reader is None else self.log_of(reader)
        if isinstance(log, CompactedSource):
            log.since(publish_time_ms, done)
        else:
            first_since(self.log, publish_time_ms, done)

    def last_visible(self) -> int:
        """Ordinal of the last entry that consumers may see (rule 5.9.12); below ``log.first`` if there is none."""
        return (
            last_visible(self.dispatch_rules, self.log.first, self.log.end) if self.dispatch_rules else self.log.end - 1
        )

    def last_position(self) -> Position:
        """Of the last entry that consumers may see, (-1, -1) for an empty topic."""
        last = self.last_visible()
        return self.log.position(last) if last >= self.log.first else EARLIEST

    # policies ----------------------------------------------------------------------------------------------------

    def set_policies(self, policies: TopicPolicies) -> None:
        """Somebody changed a policy of the topic or of its namespace."""
        before, self.policies = self.policies, policies
        settings = with_policies(self._broker_settings, policies)
        if settings != self._settings:
            self._settings = settings
            for subscription in list(self.subscriptions.values()):
                subscription.set_settings(settings)
        self.delays.set_policy(policies.delayed_delivery)
        for producer in self.producers.with_waiting():
            producer.append = self.delays.append
        if policies != before:
            for listener in list(self.policy_listeners):
                listener(before, policies)

    # upkeep ------------------------------------------------------------------------------------------------------

    def trim(self) -> int:
        """Drop ledgers that all durable subscriptions have consumed; how many (rules 4.2.2, 4.2.3).

        If the topic retains more than that, :func:`apply_retention` lets go instead.
        """
        if self.compactor is not None:
            self.compactor.upkeep()
        if self.policies.retention != _NO_RETENTION:
            return 0
        dropped = self.log.trim(self.slowest() + 1)
        if dropped:
            self._readers_jump()
        return dropped

    def trim_to(self, keep_from: int, hidden_bytes: int) -> int:
        """Let go of exactly what lies before ``keep_from``; how many ledgers went."""
        dropped = self.log.trim(keep_from, hidden_bytes)
        self._readers_jump()
        return dropped

    def _readers_jump(self) -> None:
        """Non-durable cursors in what is gone go on behind it, and count what they lost (rule 4.3.2)."""
        if self.transactions is not None:
            self.transactions.trimmed(self.log.first)
        for subscription in self.subscriptions.values():
            if not subscription.durable:
                subscription.trimmed()

    def slowest(self) -> int:
        """The lowest mark-delete of the durable subscriptions; without any everything counts as consumed (4.2.3)."""
        marks = [s.cursor.mark_delete for s in self.subscriptions.values() if s.durable]
        return min(marks, default=self.log.end - 1)

    def close(self) -> None:
        """Unload or delete: everybody is disconnected."""
        self.closed = True
        if self.transactions is not None:
            self.transactions.close()
        if self.compactor is not None:
            self.compactor.close()
        self.delays.close()
        subscriptions = [subscription.close for subscription in self.subscriptions.values()]
        call_all(self.name.fqn, [self.producers.close_all, *subscriptions])

    def properties(self) -> dict[str, Any]:
        """What users keep beside the log."""
        return {name: value for name, value in self.log.properties.items() if not name.startswith(INTERNAL_PREFIXES)}

    def set_properties(self, properties: dict[str, Any]) -> None:
        """Replace them; durable with the next group."""
        ours = {name: value for name, value in self.log.properties.items() if name.startswith(INTERNAL_PREFIXES)}
        self.log.properties = {**properties, **ours}
        self.log.write_birth()


def _nothing() -> None: ...
