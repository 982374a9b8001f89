"""All numbers of one moment, made of the same counters as /metrics, with the attributes of Apache Pulsar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from magnetar.admin.ports import BrokerPort
from magnetar.admin.values.counters import CounterOptions, TopicCounters
from magnetar.telemetry.instruments import MEASURED

TOPICS_MAX: Final = 10_000
"""So many topics have series of their own; the numbers of the others are added up, marked as an overflow."""
_PARTITION: Final = "-partition-"
Attributes = tuple[tuple[str, str | int | bool], ...]
Snapshot = Mapping[str, Mapping[Attributes, float]]
"""By metric and attributes. It is never changed once made, so threads may read it."""
_OVERFLOW: Final[Attributes] = (("otel.metric.overflow", True),)


async def snapshot(broker: BrokerPort, topics_max: int = TOPICS_MAX) -> Snapshot:
    """Ask for the numbers of all topics, in turns between which clients are served."""
    made: dict[str, dict[Attributes, float]] = {}

    def add(name: str, attributes: Attributes, value: float) -> None:
        of_one = made.setdefault("pulsar.broker." + name, {})
        of_one[attributes] = of_one.get(attributes, 0) + value

    topics = ledgers = 0
    async for counters in broker.counters(CounterOptions()):
        topics += 1
        ledgers += counters.stored is not None
        attributes = _attributes(counters) if topics <= topics_max else _OVERFLOW
        for name, value, more in _numbers(counters):
            add("topic." + name, attributes + more, value)
    add("managed_ledger.count", (), ledgers)
    for one in broker.measurements():
        if one.family in MEASURED:
            name, attributes = MEASURED[one.family]
            add(name, attributes, one.value)
    return made


def _attributes(counters: TopicCounters) -> Attributes:
    topic = counters.topic
    parent, marked, index = topic.fqn.rpartition(_PARTITION)
    partition = bool(marked) and index.isdecimal()
    found: Attributes = (
        ("pulsar.domain", topic.fqn.partition(":")[0]),
        ("pulsar.tenant", topic.namespace.text.partition("/")[0]),
        ("pulsar.namespace", topic.namespace.text),
        ("pulsar.topic", parent if partition else topic.fqn),
    )
    return (*found, ("pulsar.partition.index", int(index))) if partition else found


def _numbers(c: TopicCounters) -> Iterator[tuple[str, float, Attributes]]:
    yield "subscription.count", len(c.subscriptions), ()
    yield "producer.count", c.producers, ()
    yield "consumer.count", c.consumers, ()
    yield "message.incoming.count", c.messages_in, ()
    yield "message.outgoing.count", c.messages_out, ()
    yield "message.incoming.size", c.bytes_in, ()
    yield "message.outgoing.size", c.bytes_out, ()
    yield "publish.rate.limit.count", c.publish_limited, ()
    yield "subscription.delayed.entry.count", sum([each.delayed for each in c.subscriptions]), ()
    if (stored := c.stored) is not None:
        yield "storage.size", c.storage_bytes, ()
        yield "storage.logical.size", c.storage_bytes, ()
        yield "storage.backlog.size", c.backlog_bytes, ()
        yield "storage.offloaded.size", stored.offloaded_bytes, ()
        yield "storage.backlog.quota.limit.size", stored.quota_bytes, ()
        yield "storage.backlog.quota.limit.time", stored.quota_seconds, ()
        yield "storage.backlog.age", stored.oldest_seconds, ()
        kind = "pulsar.backlog.quota.type"
        yield "storage.backlog.quota.eviction.count", stored.evictions_size, ((kind, "size"),)
        yield "storage.backlog.quota.eviction.count", stored.evictions_time, ((kind, "time"),)
    if (compaction := c.compaction) is not None:
        status = "pulsar.compaction.status"
        yield "compaction.removed.message.count", compaction.removed, ()
        yield "compaction.operation.count", compaction.succeeded, ((status, "success"),)
        yield "compaction.operation.count", compaction.failed, ((status, "failure"),)
        yield "compaction.compacted.entry.count", compaction.entries, ()
        yield "compaction.compacted.entry.size", compaction.bytes, ()
    if c.transactions is not None:
        for word, number in zip(("active", "committed", "aborted"), c.transactions, strict=True):
            yield "transaction.count", number, (("pulsar.transaction.status", word),)
