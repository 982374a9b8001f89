"""A broker with topics and subscriptions in dictionaries, for the REST tests."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import cast

from magnetar.admin.ports import BrokerPorts, LookupAnswer, OffloadsPort, StatsOptions, TransactionsPort
from magnetar.admin.values.counters import CounterOptions, Measured, SubscriptionCounters, TopicCounters
from magnetar.admin.values.inner_peer import InnerClientMaker
from magnetar.admin.values.stored_message import StoredMessage
from magnetar.broker.policies.effective_policies import EffectivePolicies
from magnetar.broker.schema_registry import SchemaRegistry
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    ConflictError,
    NotFoundError,
    PreconditionFailedError,
    ServiceNotReadyError,
    SubscriptionExistsError,
    SubscriptionNotFoundError,
    TopicNotFoundError,
)
from magnetar.model.ids import Position
from magnetar.model.names import Domain, NamespaceName, TopicName
from magnetar.model.policies import JsonObject
from magnetar.model.system_topics import is_system_topic
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.clock import SystemClock


class FakeBroker:
    """Records what it was asked to do; raises as the real one must."""

    def __init__(self, resources: Resources, settings: Settings | None = None) -> None:
        self.resources = resources
        self.policies = EffectivePolicies(resources, settings or Settings())
        self.schemas = SchemaRegistry(resources.schemas, self.policies, SystemClock())
        self.topics: dict[TopicName, dict[str, Position]] = {}
        self.properties: dict[TopicName, dict[str, str]] = {}
        self.clients: dict[TopicName, int] = {}
        self.busy_subscriptions: set[str] = set()
        self.unloaded: list[str] = []
        self.ended: list[tuple[str, str]] = []
        self.of_subscriptions: dict[str, dict[str, str]] = {}
        self.replicated: set[tuple[TopicName, str]] = set()

        self.compacting: list[TopicName] = []
        self.moved: list[tuple[str, str, str, int | None]] = []
        self.options: StatsOptions | None = None
        self.sick: Exception | None = None
        self.quotas_checked = 0
        self.stopped = False
        self.backups: list[str] = []
        self.transactions: TransactionsPort | None = None

    def ports(self) -> BrokerPorts:
        """This broker as each of the ports; tests of transactions and of offloading have a real one."""
        return BrokerPorts(
            topics=self,
            operations=self,
            subscriptions=self,
            messages=self,
            statistics=self,
            broker=self,
            control=self,
            schemas=self.schemas,
            offloads=cast("OffloadsPort", None),
            clients=cast("InnerClientMaker", None),
            transactions=self.transactions,
        )

    def loaded_topics(self) -> Iterable[TopicName]:
        return list(self.topics)

    async def check_backlog_quotas(self) -> None:
        self.quotas_checked += 1

    async def begin_backup(self, name: str) -> JsonObject:
        self.backups.append(name)
        return self.backup_status()

    def backup_status(self) -> JsonObject:
        if not self.backups:
            raise NotFoundError("no backup was begun since the broker started")
        return {"name": self.backups[-1], "status": "RUNNING"}

    def stop(self) -> None:
        self.stopped = True

    def topics_of(self, namespace: NamespaceName) -> Iterable[TopicName]:
        return [topic for topic in self.topics if topic.namespace == namespace]

    def names_of(self, namespace: NamespaceName, domains: Sequence[Domain], *, system: bool) -> Sequence[Sequence[str]]:
        topics = (topic for topic in self.topics_of(namespace) if topic.domain in domains)
        return [sorted(topic.fqn for topic in topics if system or not is_system_topic(topic))]

    def topic_exists(self, topic: TopicName) -> bool:
        return topic in self.topics

    def partitions_of(self, topic: TopicName) -> list[TopicName]:
        names = [name for name in self.topics if name.is_partition and name.parent == topic]
        return sorted(names, key=lambda name: name.partition_index)

    def clients_of(self, topic: TopicName) -> int:
        return self.clients.get(topic, 0)

    async def partition_count(self, topic: TopicName, *, auto_create: bool) -> int:
        if not auto_create and topic not in self.topics:
            raise TopicNotFoundError("")
        return self.resources.partitioned.count(topic)

    def room_for(self, namespace: NamespaceName, topics: int) -> bool:
        most = self.policies.max_topics(namespace)
        return not most or len(list(self.topics_of(namespace))) + topics <= most

    async def policies_in_force(self) -> None: ...

    def policies_of(self, topic: TopicName, *, local: bool = True) -> TopicPolicies:
        return self.policies.of(topic) if local else self.policies.without_local(topic)

    async def create_topic(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        assert topic not in self.topics
        self.topics[topic] = {}
        self.properties[topic] = dict(properties)

    async def create_partitions(self, topic: TopicName, first: int, end: int) -> None:
        for index in range(first, end):
            self.topics.setdefault(topic.partition(index), {})

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        if self.clients_of(topic) and not force:
            raise PreconditionFailedError("the route should have seen this")
        del self.topics[topic]

    async def unload_topic(self, topic: TopicName) -> None:
        self.unloaded.append(topic.local_name)

    async def terminate(self, topic: TopicName) -> JsonObject:
        self.ended.append(("terminate", topic.local_name))
        return {"ledgerId": 1, "entryId": 2, "partitionIndex": topic.partition_index, "batchIndex": -1, "batchSize": 0}

    async def truncate(self, topic: TopicName) -> None:
        self.ended.append(("truncate", topic.local_name))

    async def trim(self, topic: TopicName) -> None:
        self.ended.append(("trim", topic.local_name))

    def topic_properties(self, topic: TopicName) -> dict[str, str]:
        return dict(self.properties.get(topic, {}))

    async def set_topic_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        self.properties[topic] = dict(properties)

    async def expire(self, topic: TopicName, name: str, seconds: int) -> bool:
        self._existing(topic, name)
        self.moved.append((topic.local_name, name, "expire", seconds))
        return seconds < 10

    async def expire_until(self, topic: TopicName, name: str, position: Position, excluded: bool) -> bool:
        self._existing(topic, name)
        return not excluded

    async def reset_to(
        self, topic: TopicName, name: str, position: Position, excluded: bool, batch_index: int = -1
    ) -> None:
        self._existing(topic, name)
        self.topics[topic][name] = position

    def subscription_properties(self, topic: TopicName, name: str) -> dict[str, str]:
        self._existing(topic, name)
        return dict(self.of_subscriptions.get(name, {}))

    async def set_subscription_properties(self, topic: TopicName, name: str, properties: Mapping[str, str]) -> None:
        self._existing(topic, name)
        self.of_subscriptions[name] = dict(properties)

    def _existing(self, topic: TopicName, name: str) -> None:
        if name not in self.topics[topic]:
            raise SubscriptionNotFoundError(f"Subscription {name} not found for topic {topic.fqn}")

    async def compact_topic(self, topic: TopicName) -> None:
        if topic in self.compacting:
            raise ConflictError("Compaction already in progress")
        self.compacting.append(topic)

    async def compaction_status(self, topic: TopicName) -> JsonObject:
        return {"status": "RUNNING" if topic in self.compacting else "NOT_RUN", "lastError": ""}

    async def topic_stats(self, topic: TopicName, options: StatsOptions) -> JsonObject:
        self.options = options
        return {
            "msgRateIn": 1.5,
            "msgInCounter": 10,
            "averageMsgSize": 4.0 + topic.partition_index,
            "earliestMsgPublishTimeInBacklogs": 1795266547904,
            "publishers": [{"msgRateIn": 1.5, "producerId": 7, "producerName": "p", "address": "/127.0.0.1:1"}],
            "subscriptions": {
                name: {
                    "type": "Shared",
                    "msgBacklog": 3,
                    "isDurable": True,
                    "activeConsumerName": "c",
                    "lastAckedTimestamp": 1795267140973,
                    "consumers": [{"consumerName": "c", "unackedMessages": 2, "address": "/127.0.0.1:1"}],
                }
                for name in self.topics[topic]
            },
            "ownerBroker": "127.0.0.1:8080",
        }

    async def internal_stats(self, topic: TopicName) -> JsonObject:
        return {"state": "LedgerOpened", "numberOfEntries": 5}

    async def managed_ledger_info(self, topic: TopicName) -> JsonObject:
        return {"ledgers": [], "cursors": {}}

    async def offline_backlog(self, topic: TopicName, parts: Sequence[TopicName]) -> JsonObject:
        return {"messageBacklog": len(parts)}

    def backlog_size(self, topic: TopicName, position: Position) -> int:
        return position.entry

    def is_replicated(self, topic: TopicName, name: str) -> bool:
        self._existing(topic, name)
        return (topic, name) in self.replicated

    async def set_replicated(self, topic: TopicName, name: str, *, replicated: bool) -> None:
        (self.replicated.add if replicated else self.replicated.discard)((topic, name))

    async def subscriptions_of(self, topic: TopicName) -> list[str]:
        return list(self.topics[topic])

    async def create_subscription(
        self, topic: TopicName, name: str, start: Position, properties: Mapping[str, str], *, replicated: bool
    ) -> None:
        subscriptions = self.topics.setdefault(topic, {})
        if name in subscriptions:
            raise SubscriptionExistsError
        subscriptions[name] = start

    async def deletion_over(self, topic: TopicName, name: str) -> None: ...

    async def delete_subscription(self, topic: TopicName, name: str, *, force: bool) -> None:
        if name in self.busy_subscriptions and not force:
            raise PreconditionFailedError("Subscription has active connected consumers")
        del self.topics[topic][name]

    def lookup(self, topic: TopicName, listener: str | None) -> LookupAnswer:
        if listener is not None:
            raise ServiceNotReadyError(f"the broker do not have {listener} listener")
        return LookupAnswer("pulsar://127.0.0.1:6650", "", "http://127.0.0.1:8080", "")

    def web_url(self) -> str:
        return "http://127.0.0.1:8080"

    def broker_id(self) -> str:
        return "127.0.0.1:8080"

    async def check_health(self, *, with_cluster: bool) -> None:
        if self.sick is not None:
            raise self.sick

    async def last_message_id(self, topic: TopicName) -> JsonObject:
        return {"ledgerId": 3, "entryId": 4, "partitionIndex": topic.partition_index, "batchIndex": -1, "batchSize": 0}

    async def message_id_since(self, topic: TopicName, publish_time_ms: int) -> JsonObject:
        return {**await self.last_message_id(topic), "entryId": publish_time_ms}

    async def skip(self, topic: TopicName, name: str, entries: int | None) -> None:
        self.moved.append((topic.local_name, name, "skip", entries))

    async def skip_unreadable(self, topic: TopicName, name: str) -> int:
        self.moved.append((topic.local_name, name, "skip unreadable", 0))
        return 3

    async def reset_cursor(self, topic: TopicName, name: str, publish_time_ms: int) -> None:
        self.moved.append((topic.local_name, name, "reset", publish_time_ms))

    async def explain(self, topic: TopicName, name: str) -> JsonObject:
        return {"topic": topic.fqn, "subscription": name}

    async def unacknowledged(self, topic: TopicName, name: str, slot: int | None, key: str | None) -> JsonObject:
        return {"topic": topic.fqn, "subscription": name, "hash": slot, "key": key}

    async def peek(self, topic: TopicName, name: str, number: int) -> StoredMessage:
        return StoredMessage(f"{name} {number}".encode(), {})

    async def examine(self, topic: TopicName, number: int, *, from_start: bool) -> StoredMessage:
        return StoredMessage(f"{number} {from_start}".encode(), {})

    async def message(self, topic: TopicName, position: Position) -> StoredMessage:
        return StoredMessage(str(position).encode(), {})

    async def analyze_backlog(self, topic: TopicName, name: str, start: Position | None) -> JsonObject:
        return {"subscription": name, "start": None if start is None else str(start)}

    def measurements(self) -> Iterable[Measured]:
        yield Measured("pulsar_ml_cache_used_size", 16)
        yield Measured("pulsar_broker_lookup", math.nan, (("quantile", "0.5"),))
        yield Measured("pulsar_broker_lookup", 3, (), "_count")
        yield Measured("magnetar_tls_handshakes_total", 5)
        for method, successes, failures in (("token", 7, 2), ("basic", 0, 1)):
            labels = (("auth_method", method),)
            yield Measured("pulsar_authentication_success_total", successes, labels)
            yield Measured("pulsar_authentication_failures_total", failures, labels)

    async def counters(self, options: CounterOptions) -> AsyncIterator[TopicCounters]:
        subscription = SubscriptionCounters("s", 2, 8, 7, 1, 60, 700, 0.5, 5.5, 0.1, 0.2)
        for topic in self.topics:
            yield TopicCounters(topic, 1, 2, 40, 500, 2.0, 0.5, 25.0, 5.5, 8, 99, 900, [subscription])
