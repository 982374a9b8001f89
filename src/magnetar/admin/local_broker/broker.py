"""The broker of this very process, as the REST interface needs it (:class:`magnetar.admin.ports.AdminBroker`).

Everything runs on the broker's event loop. What changes something answers when the change is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from magnetar.admin.local_broker import stored_messages, topic_operations
from magnetar.admin.local_broker.entries import message_id_at, position_id
from magnetar.admin.local_broker.offload_views import OffloadViews
from magnetar.admin.local_broker.stats.internal_stats import internal_stats
from magnetar.admin.local_broker.stats.nonpersistent_stats import (
    unstored_counters,
    unstored_internal_stats,
    unstored_topic_stats,
)
from magnetar.admin.local_broker.stats.topic_counters import topic_counters
from magnetar.admin.local_broker.stats.topic_stats import topic_stats
from magnetar.admin.local_broker.subscription_explanation import explanation, of_hash
from magnetar.admin.local_broker.transaction_views import TransactionViews
from magnetar.admin.ports import LookupAnswer, StatsOptions
from magnetar.admin.values.counters import StorageCounters, TopicCounters
from magnetar.admin.values.stored_message import StoredMessage
from magnetar.broker import lookup
from magnetar.broker.connection.listener import Connections
from magnetar.broker.heartbeat import Heartbeat
from magnetar.broker.rates import Rates
from magnetar.broker.schemas import SchemaRegistry
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import NonPersistentSubscription
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.cursor_properties import REPLICATED
from magnetar.model.errors import (
    ConflictError,
    NotAllowedError,
    PreconditionFailedError,
    ServiceNotReadyError,
    SubscriptionNotFoundError,
    TopicNotFoundError,
)
from magnetar.model.ids import LATEST, Position
from magnetar.model.names import Domain, NamespaceName, TopicName
from magnetar.model.policies import JsonObject
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.answers import answered


class LocalBroker:
    """Implements AdminBroker over one :class:`BrokerService`."""

    def __init__(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        self._service = service
        self._rates = rates
        self._connections = connections
        self._heartbeat = Heartbeat(service)

    # topics ------------------------------------------------------------------------------------------------------

    def topics_of(self, namespace: NamespaceName) -> Iterable[TopicName]:
        pieces = self._service.directory.pieces(namespace, system=True)
        return map(TopicName.stored, chain.from_iterable(pieces))

    def names_of(self, namespace: NamespaceName, domains: Sequence[Domain], *, system: bool) -> Sequence[Sequence[str]]:
        return self._service.directory.pieces(namespace, domains, system=system)

    def topic_exists(self, topic: TopicName) -> bool:
        return self._service.exists(topic)

    def clients_of(self, topic: TopicName) -> int:
        service = self._service
        found = service.topics.get(topic.fqn) or service.unstored.by_name.get(topic.fqn)
        return 0 if found is None else len(found.producers) + found.consumer_count()

    @property
    def schemas(self) -> SchemaRegistry:
        return self._service.schemas

    async def partition_count(self, topic: TopicName, *, auto_create: bool) -> int:
        service = self._service
        return lookup.partition_count(
            service.resources,
            service.policies.auto_topic_creation(topic.namespace),
            topic,
            service.room_for,
            exists=service.exists(topic),
            may_create=auto_create,
        )

    def room_for(self, namespace: NamespaceName, topics: int) -> bool:
        return self._service.room_for(namespace, topics)

    async def policies_in_force(self) -> None:
        await self._service.policy_telling.told()

    def policies_of(self, topic: TopicName) -> TopicPolicies:
        return self._service.policies.of(topic)

    async def create_topic(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        if not topic.persistent:
            self._service.create_unstored(topic)
            return
        found = self._service.create(topic)
        if properties:
            found.set_properties(dict(properties))
        await answered(found.when_durable)

    async def create_partitions(self, topic: TopicName, first: int, end: int) -> None:
        if not topic.persistent:
            return  # they come with their first client (SEMANTICS 13.1 {probe})
        await self._service.partitions.make_durably(topic, first, end)

    def partitions_of(self, topic: TopicName) -> list[TopicName]:
        return self._service.partitions_of(topic)

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        if not topic.persistent:
            self._service.delete_unstored(topic)
            return
        self._service.delete(topic, force=force)
        await self._durable()

    async def unload_topic(self, topic: TopicName) -> None:
        if not topic.persistent:
            self._service.unstored.remove(topic)
            return
        if topic.fqn not in self._service.topics and self._service.exists(topic):
            return  # nothing is loaded of it
        await topic_operations.durable(self._topic(topic).log.barrier)
        if topic.fqn in self._service.topics:
            self._service.unload(topic)
        await self._durable()

    async def last_message_id(self, topic: TopicName) -> JsonObject:
        found = self._topic(topic)
        return await message_id_at(found, found.last_visible())

    async def message_id_since(self, topic: TopicName, publish_time_ms: int) -> JsonObject:
        found = self._topic(topic)
        return position_id(found, await answered(partial(found.find_time, publish_time_ms)))

    # ends and properties -----------------------------------------------------------------------------------------

    async def terminate(self, topic: TopicName) -> JsonObject:
        return await topic_operations.terminate(self._topic(topic))

    async def truncate(self, topic: TopicName) -> None:
        await topic_operations.truncate(self._topic(topic))

    async def trim(self, topic: TopicName) -> None:
        await topic_operations.trim(self._topic(topic))

    def topic_properties(self, topic: TopicName) -> dict[str, str]:
        return {name: str(value) for name, value in self._topic(topic).properties().items()}

    async def set_topic_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        self._topic(topic).set_properties(dict(properties))
        await self._durable()

    async def expire(self, topic: TopicName, name: str, seconds: int) -> bool:
        found = self._topic(topic)
        return await topic_operations.expire_older(found, self._subscription(found, name), seconds)

    async def expire_until(self, topic: TopicName, name: str, position: Position, excluded: bool) -> bool:
        found = self._topic(topic)
        return await topic_operations.expire_until(found, self._subscription(found, name), position, excluded=excluded)

    async def reset_to(self, topic: TopicName, name: str, position: Position, excluded: bool) -> None:
        found = self._topic(topic)
        await topic_operations.reset_to(found, self._subscription(found, name), position, excluded=excluded)

    def subscription_properties(self, topic: TopicName, name: str) -> dict[str, str]:
        if not topic.persistent:
            return dict(self._unstored_subscription(topic, name).properties)
        cursor = self._subscription(self._topic(topic), name).cursor
        return {key: str(value) for key, value in cursor.properties.items() if not key.startswith("#")}

    async def set_subscription_properties(self, topic: TopicName, name: str, properties: Mapping[str, str]) -> None:
        if not topic.persistent:
            self._unstored_subscription(topic, name).properties = dict(properties)
            return
        found = self._topic(topic)
        cursor = found.log.cursors.get(self._subscription(found, name).name)
        if cursor is not None:
            cursor.set_properties(dict(properties))
        await self._durable()

    async def compact_topic(self, topic: TopicName) -> None:
        found = self._topic(topic)
        await answered(found.when_durable)
        found.compaction().begin(retain_keyless=self._service.settings.topicCompactionRetainNullKey)

    async def compaction_status(self, topic: TopicName) -> JsonObject:
        compactor = self._topic(topic).compactor
        if compactor is None:
            return {"status": "NOT_RUN", "lastError": ""}
        return {"status": compactor.status, "lastError": compactor.last_error}

    # statistics --------------------------------------------------------------------------------------------------

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> JsonObject:
        if not topic.persistent:
            return unstored_topic_stats(self._unstored(topic), self._rates, options, self.broker_id())
        return await topic_stats(self._topic(topic), self._rates, options, self.broker_id())

    async def internal_stats(self, topic: TopicName) -> JsonObject:
        if not topic.persistent:
            return unstored_internal_stats(self._unstored(topic))
        return internal_stats(self._topic(topic))

    def counters(self) -> Iterable[TopicCounters]:
        stored = (topic_counters(topic, self._rates) for topic in list(self._service.topics.values()))
        unstored = list(self._service.unstored.by_name.values())
        return chain(stored, (unstored_counters(topic, self._rates) for topic in unstored))

    def transactions(self) -> TransactionViews | None:
        enabled = self._service.settings.transactionCoordinatorEnabled
        return TransactionViews(self._service) if enabled else None

    def offloads(self) -> OffloadViews:
        return OffloadViews(self._service)

    def storage(self) -> StorageCounters:
        store = self._service.store
        journal = store.journal
        return StorageCounters(
            sync_data=journal.sync_data,
            failing=journal.failing is not None,
            writes=journal.writes,
            syncs=journal.writes if journal.sync_data else 0,
            bytes_written=journal.bytes_written,
            pending_bytes=journal.pending_bytes,
            segment=journal.segment,
            cache_bytes=store.cache.bytes,
            cache_bytes_max=store.cache.bytes_max,
        )

    # subscriptions -----------------------------------------------------------------------------------------------

    async def subscriptions_of(self, topic: TopicName) -> list[str]:
        return list((self._topic(topic) if topic.persistent else self._unstored(topic)).subscriptions)

    async def create_subscription(
        self, topic: TopicName, name: str, start: Position, properties: Mapping[str, str], *, replicated: bool
    ) -> None:
        found = self._service.topic_for(topic, create=True)
        await answered(found.when_durable)
        if name in found.subscriptions:
            raise ConflictError("Subscription already exists for topic")
        ordinal = found.log.end if start == LATEST else found.log.ordinal(start)
        try:
            told = {**properties, **(REPLICATED if replicated else {})}
            await topic_operations.durable(lambda done, _: found.create_subscription(name, ordinal, done, told))
        except NotAllowedError as full:
            raise ConflictError(str(full)) from None  # 409 here, NotAllowedError on the wire

    async def delete_subscription(self, topic: TopicName, name: str, *, force: bool) -> None:
        if not topic.persistent:
            self._unstored_subscription(topic, name)
            self._unstored(topic).delete_subscription(name, _nothing)
            return
        found = self._topic(topic)
        if self._subscription(found, name).consumers and not force:
            raise PreconditionFailedError("Subscription has active connected consumers")
        await topic_operations.durable(lambda done, _: found.delete_subscription(name, done))

    async def skip(self, topic: TopicName, name: str, entries: int | None) -> None:
        if not topic.persistent:
            self._unstored_subscription(topic, name)
            raise NotAllowedError(f"nothing to skip: {topic.fqn} is a non-persistent topic, which stores nothing")
        found = self._topic(topic)
        subscription = self._subscription(found, name)
        last = found.log.end - 1
        if entries is not None:
            last = _nth_unacknowledged(subscription, entries, last)
        await topic_operations.durable(lambda done, _: subscription.skip_until(last, done))

    async def skip_unreadable(self, topic: TopicName, name: str) -> int:
        if not topic.persistent:
            self._unstored_subscription(topic, name)
            return 0
        found = self._topic(topic)
        skipped = self._subscription(found, name).skip_unreadable()
        await topic_operations.durable(found.log.barrier)
        return skipped

    async def reset_cursor(self, topic: TopicName, name: str, publish_time_ms: int) -> None:
        if not topic.persistent:
            self._unstored_subscription(topic, name)
            return
        found = self._topic(topic)
        subscription = self._subscription(found, name)
        ordinal = await answered(partial(found.find_time, publish_time_ms))
        if found.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        await topic_operations.durable(lambda done, _: subscription.seek_to(ordinal, done))

    async def explain(self, topic: TopicName, name: str) -> JsonObject:
        return explanation(self._subscription(self._topic(topic), name))

    async def unacknowledged(self, topic: TopicName, name: str, slot: int | None, key: str | None) -> JsonObject:
        found = self._topic(topic)
        return await of_hash(self._subscription(found, name), found.log, slot, key)

    async def peek(self, topic: TopicName, name: str, number: int) -> StoredMessage:
        found = self._topic(topic)
        return await stored_messages.peek(found, self._subscription(found, name), number)

    async def examine(self, topic: TopicName, number: int, *, from_start: bool) -> StoredMessage:
        return await stored_messages.examine(self._topic(topic), number, from_start=from_start)

    async def message(self, topic: TopicName, position: Position) -> StoredMessage:
        return await stored_messages.by_id(self._topic(topic), position)

    async def analyze_backlog(self, topic: TopicName, name: str, start: Position | None) -> JsonObject:
        found = self._topic(topic)
        most = self._service.settings.subscriptionBacklogScanMaxEntries
        return await stored_messages.analyze(found, self._subscription(found, name), start, most)

    def stuck_total(self) -> int:
        return self._service.stuck_total

    # the broker --------------------------------------------------------------------------------------------------

    def lookup(self, topic: TopicName, listener: str | None) -> LookupAnswer:
        lookup.require_listener(listener)
        return LookupAnswer(self._service.service_url, self._service.web_service_url)

    def broker_id(self) -> str:
        return self._service.broker_id

    async def check_health(self, *, with_cluster: bool) -> None:
        await self._heartbeat.check(with_cluster=with_cluster)

    def connections(self) -> int:
        return len(self._connections)

    def held_by_connections(self) -> Mapping[str, int]:
        return self._connections.held()

    # inside ------------------------------------------------------------------------------------------------------

    def _topic(self, name: TopicName) -> Topic:
        found = self._service.find(name)
        if found is None:
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return found

    def _unstored(self, name: TopicName) -> NonPersistentTopic:
        found = self._service.unstored.by_name.get(name.fqn)
        if found is None:
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return found

    def _unstored_subscription(self, topic: TopicName, name: str) -> NonPersistentSubscription:
        found = self._unstored(topic).subscriptions.get(name)
        if found is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found for topic {topic.fqn}")
        return found

    def _subscription(self, topic: Topic, name: str) -> Subscription:
        found = topic.subscriptions.get(name)
        if found is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found for topic {topic.name.fqn}")
        return found

    async def _durable(self) -> None:
        """Until everything that was changed before is on the disk. Raises PersistenceError."""
        await topic_operations.durable(self._service.store.journal.barrier)


def _nothing() -> None: ...


def _nth_unacknowledged(subscription: Subscription, count: int, last: int) -> int:
    """Ordinal of the ``count``-th entry that is not acknowledged, at most ``last``."""
    cursor = subscription.cursor
    ordinal = cursor.mark_delete
    while count > 0 and ordinal < last:
        start = cursor.next_unacknowledged(ordinal + 1)
        if start > last:
            break
        stop = cursor.next_acknowledged(start, min(last + 1, start + count))
        count -= stop - start
        ordinal = stop - 1
    return ordinal
