"""One topic: its log, its producers, its subscriptions.

Order is fixed when an entry is appended; everything else happens once per group commit: receipts to the producers,
then one notice to every subscription that there is more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

from magnetar.broker.throttling.shared_limits import SharedLimits
from magnetar.broker.topic.cleanup.backlog_quotas import BacklogQuotas
from magnetar.broker.topic.cleanup.termination import Termination
from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.compaction.compactor import Compactor
from magnetar.broker.topic.dispatch.delays import Delays
from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule, last_visible
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.limits import check_consumer, check_subscription, with_policies
from magnetar.broker.topic.ports import DurableAnswer, Log, SentTotals
from magnetar.broker.topic.position_search import first_since
from magnetar.broker.topic.publish.chunk_record import Chunking
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.publish.producers import Admitted, Producers
from magnetar.broker.topic.publish.publish_checks import PublishChecks, PublishSettings
from magnetar.broker.topic.publish.publish_results import PublishResults, detach
from magnetar.broker.topic.publish.topic_epoch import LogEpoch
from magnetar.broker.topic.subscription.dispatch_rates import DispatchRates, limits_dispatch
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.broker.topic.throughput import UNSEEN, Pace
from magnetar.broker.topic.topic_api import SubscriptionApi
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.broker.topic.transactions.topic_transactions import TopicTransactions
from magnetar.model.errors import PersistenceError, ServiceNotReadyError
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.names import TopicName
from magnetar.model.own_properties import OF_TOPICS
from magnetar.model.policies import Retention
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.clock import Clock
from magnetar.runtime.teardown import call_all
from magnetar.storage.store import LedgerStore
from magnetar.transactions.feature_state import TRANSACTIONS

log = logging.getLogger(__name__)

_NO_RETENTION: Final = Retention(0, 0)


class Topic:
    """A loaded topic; lives on the event loop."""

    def __init__(
        self, name: TopicName, store: LedgerStore, settings: DispatchSettings, clock: Clock, rng: Random,
        policies: TopicPolicies, publishing: PublishSettings | None = None, shared: SharedLimits | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.policies = policies
        """What holds for this topic now (decision 006); replaced, never changed."""
        self.clock = clock
        self.closed = False
        self.loaded_ms = clock.now_ms()
        self.idle_since_ms: int | None = None
        """Since when it is unused; kept by the removal of inactive topics."""
        self.pace: Pace = UNSEEN
        self._rng = rng
        self._store = store
        self._broker_settings = settings
        self._settings = with_policies(settings, policies)
        self._birth: list[DurableAnswer] | None = []
        self.log = log = store.open_log(name.fqn, self._born, self._not_born)
        self.producers = Producers(name.fqn, LogEpoch(log))
        self._shared = shared or SharedLimits()
        self.subscriptions = Subscriptions(
            TopicIdentity(name.fqn, name.partition_index), log, self._settings, clock, self._shared.passes
        )
        self.results = results = PublishResults(self.producers)
        log.on_durable, log.on_failed = results.durable, results.failed
        log.on_group = self.subscriptions.entries_appended
        log.on_counted = results.stored
        self.checks = PublishChecks(
            name.fqn, self.producers, policies, clock, publishing or PublishSettings(), log,
            self._shared,
        )  # fmt: skip
        self.chunking = Chunking(log, self.subscriptions.has_chunks)
        self.quotas = BacklogQuotas(log, self.producers, self.subscriptions, policies)
        self.termination = Termination(log, self.producers, self.subscriptions)
        self.subscriptions.load()
        self.delays = Delays(
            self.subscriptions, log, clock, policies.delayed_delivery, settings.deliver_at_time_strict
        )  # fmt: skip
        self._features: list[TopicFeature] = [self.checks, self.quotas, self.delays]
        self.transactions: TopicTransactions | None = None
        """None: the topic never took part in one."""
        if TRANSACTIONS in log.feature_states:
            self.transacting()
        self.compactor: Compactor | None = None
        """None while the topic has nothing to do with compaction."""
        if COMPACTION_SUBSCRIPTION in log.cursors:
            self.compaction()
        self._keep_uncompacted()
        self.dispatch_rates: DispatchRates | None = None
        """None while nothing limits what the topic dispatches."""
        self._limit_dispatch()

    @property
    def msg_in(self) -> int:
        """Messages stored since the topic was loaded."""
        return self.results.msg_in

    @property
    def bytes_in(self) -> int:
        """Bytes stored since the topic was loaded."""
        return self.results.bytes_in

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
        # the log writes its birth again with the first entry or cursor; until then no client was answered that it
        # exists
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

    # subscriptions -----------------------------------------------------------------------------------------------

    def subscription(
        self, name: str, *, durable: bool, ordinal: Callable[[], int], properties: dict[str, str],
        done: Callable[[], None],
    ) -> Subscription:  # fmt: skip
        """The subscription of that name, made at ``ordinal()`` if missing; ``done`` when it is durable.

        Raises NotAllowedError if it exists with the other durability (rule 0.12) or there are too many (rule 5.1.6).
        """
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        if name != COMPACTION_SUBSCRIPTION and name not in self.subscriptions:
            check_subscription(self.name.fqn, self.policies, len(self.subscriptions))
        return self.subscriptions.open(name, durable=durable, ordinal=ordinal, properties=properties, done=done)

    def loaded_subscriptions(self) -> list[Subscription]:
        """Those that anything has asked for since the topic was loaded; the others have no consumers."""
        return self.subscriptions.loaded()

    def check_consumer(self, sub_type: SubType) -> None:
        """Whether one more consumer may come. Raises NotAllowedError, ConsumerBusyError (rules 5.1.5, 5.1.6)."""
        check_consumer(self.name.fqn, self.policies, sub_type, self.consumer_count)

    def create_subscription(
        self, name: str, ordinal: int, done: Callable[[], None] | None = None,
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """A durable subscription without a consumer; ``done`` when it is durable."""
        self.subscription(
            name, durable=True, ordinal=lambda: ordinal, properties=dict(properties), done=done or _nothing
        )  # fmt: skip

    @property
    def dispatch_rules(self) -> tuple[DispatchRule, ...]:
        """What all subscriptions ask before they send; see :mod:`magnetar.broker.topic.dispatch.dispatch_filter`."""
        return self.subscriptions.rules

    def transacting(self) -> TopicTransactions:
        """The topic's part in transactions (rules of group 9)."""
        if self.transactions is None:
            self.transactions = TopicTransactions(
                self.name.fqn, self.log, self.subscriptions, self.results, self.clock.now_ms
            )  # fmt: skip
            self._features.append(self.transactions)
        return self.transactions

    def consumer_gone(self, subscription: SubscriptionApi) -> None:
        """A consumer has left; a non-durable subscription goes with its last one (rule 4.3.2)."""
        if not subscription.durable and not subscription.consumers:
            if self.subscriptions.get(subscription.name) is subscription:
                self._forget(subscription.name)
            else:
                subscription.close()

    def after_deletion(self, subscription: str, answer: DurableAnswer) -> None:
        """Answer when no deletion of a subscription of that name is on its way to the disk, at once if none is.

        A client that is told an error of the disk may ask again. The topic may be closed by then.
        """
        self.log.after_deletion(subscription, answer)

    def delete_subscription(self, name: str, done: Callable[[], None]) -> None:
        """Forget a subscription and its cursor; its consumers are disconnected."""
        if self._forget(name).durable:
            self.log.delete_cursor(name, done)
        else:
            done()

    def _forget(self, name: str) -> Subscription:
        subscription = self.subscriptions.remove(name)
        for feature in self._features:
            feature.subscription_gone(name)
        return subscription

    def sent(self) -> SentTotals:
        """What has gone out since the topic was loaded, by subscriptions that are gone too."""
        return self.subscriptions.sent()

    def durable_subscriptions(self) -> list[str]:
        """Names, in the order they were made."""
        return [cursor.name for cursor in self.subscriptions.cursors() if cursor.durable]

    def consumer_count(self) -> int:
        """Connected consumers of all subscriptions."""
        return self.subscriptions.consumer_count()

    # compaction --------------------------------------------------------------------------------------------------

    def _keep_uncompacted(self) -> None:
        """Keep entries from trimming until they are compacted, from the moment a policy wants compaction."""
        wanted = self.policies.compaction_threshold > 0
        if wanted and not self.closed and COMPACTION_SUBSCRIPTION not in self.subscriptions:
            self.compaction().prepare()

    def compaction(self) -> Compactor:
        """The topic's part in compaction, made when it is first needed."""
        if self.compactor is None:
            self.compactor = Compactor(self.log, self._store, self.subscriptions, self.clock)
            self._features.append(self.compactor)
        return self.compactor

    def read_by(self, subscription: SubscriptionApi, *, compacted: bool) -> None:
        """A consumer is about to join: the first one decides whether the subscription reads compacted (rule 5.9.13)."""
        assert isinstance(subscription, Subscription)
        if compacted:
            subscription.read_through(self.compaction().source(subscription))
        elif subscription.log is not self.log:
            subscription.read_through(self.log)

    def reading_log(self, *, compacted: bool) -> Log:
        """The log itself or its compacted view."""
        return self.compaction().detached_source() if compacted else self.log

    def log_of(self, subscription: SubscriptionApi) -> Log:
        """The log or compacted view that its consumers read."""
        assert isinstance(subscription, Subscription)
        return subscription.log

    # positions ---------------------------------------------------------------------------------------------------

    def find_time(
        self, publish_time_ms: int, done: Callable[[int | Exception], None], reader: SubscriptionApi | None = None
    ) -> None:
        """Ordinal of the first entry, of those that ``reader`` sees, published at or after that time (rule 5.9.2)."""
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
        """Position of the last entry that consumers may see, (-1, -1) for an empty topic."""
        last = self.last_visible()
        return self.log.position(last) if last >= self.log.first else EARLIEST

    # policies ----------------------------------------------------------------------------------------------------

    def set_broker_settings(self, settings: DispatchSettings) -> None:
        """The broker's settings have changed; :meth:`set_policies` follows, which applies them."""
        self._broker_settings = settings

    def set_policies(self, policies: TopicPolicies) -> None:
        """A policy of the topic or of its namespace has changed."""
        before, self.policies = self.policies, policies
        settings = with_policies(self._broker_settings, policies)
        if settings != self._settings:
            self._settings = settings
            self.subscriptions.set_settings(settings)
        if policies != before:
            for feature in self._features:
                feature.policies_changed(before, policies)
            self._keep_uncompacted()
            self._limit_dispatch()
        for producer in self.producers.with_waiting():
            producer.append = self.delays.append

    def _limit_dispatch(self) -> None:
        if self.dispatch_rates is None and not self.closed and limits_dispatch(self.policies, self._shared):
            results = self.results
            self.dispatch_rates = DispatchRates(
                self.subscriptions, self.policies, self._shared, lambda: (results.msg_in, results.bytes_in)
            )
            self._features.append(self.dispatch_rates)

    def shared_limits_changed(self) -> None:
        """The limits of the whole broker are others."""
        self.checks.set_policies(self.policies)
        if self.dispatch_rates is not None:
            self.dispatch_rates.choose()
        self._limit_dispatch()

    # upkeep ------------------------------------------------------------------------------------------------------

    def trim(self) -> int:
        """Drop ledgers that all durable subscriptions have consumed; how many (rules 4.2.2, 4.2.3).

        If the topic retains more than that, :func:`apply_retention` lets go instead.
        """
        if self.closed:
            # the subscriptions are gone from here, their cursors and what they have not consumed are not
            return 0
        if self.compactor is not None:
            self.compactor.upkeep()
        if self.policies.retention != _NO_RETENTION:
            return 0
        dropped = self.log.trim(self.slowest() + 1)
        if dropped:
            self._trimmed()
        return dropped

    def trim_to(self, keep_from: int, hidden_bytes: int) -> int:
        """Let go of exactly what lies before ``keep_from``; how many ledgers went."""
        if self.closed:
            return 0
        dropped = self.log.trim(keep_from, hidden_bytes)
        self._trimmed()
        return dropped

    def _trimmed(self) -> None:
        for feature in self._features:
            feature.trimmed(self.log.first)
        self.subscriptions.trimmed()

    def slowest(self) -> int:
        """The lowest mark-delete of the durable subscriptions.

        Without any everything counts as consumed (rule 4.2.3).
        """
        return self.subscriptions.slowest()

    def close(self) -> None:
        """Unload or delete: every client is disconnected, and the parts let go of each other."""
        self.closed = True
        endings = [feature.close for feature in self._features]
        call_all(self.name.fqn, [*endings, self.producers.close_all, self.subscriptions.close])
        self._features.clear()
        detach(self.log)

    def properties(self) -> dict[str, Any]:
        """What users keep beside the log."""
        return {name: value for name, value in self.log.properties.items() if not name.startswith(OF_TOPICS)}

    def set_properties(self, properties: dict[str, Any]) -> None:
        """Replace them; durable with the next group."""
        ours = {name: value for name, value in self.log.properties.items() if name.startswith(OF_TOPICS)}
        self.log.properties = {**properties, **ours}
        self.log.write_birth()


def _nothing() -> None: ...
