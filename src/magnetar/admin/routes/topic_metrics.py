"""The series of topics and subscriptions at /metrics, in pieces: a hundred thousand topics make millions of lines.

The text format requires all lines of a name together, so the numbers of all topics are collected first. With
``exposeTopicLevelMetricsInPrometheus=false`` those of a namespace are added up as they come, and nothing is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from magnetar.admin.values.counters import TopicCounters

LINES_PER_PIECE: Final = 500
_PER_TOPIC: Final = {
    "pulsar_producers_count": "producers",
    "pulsar_consumers_count": "consumers",
    "pulsar_in_messages_total": "messages_in",
    "pulsar_in_bytes_total": "bytes_in",
    "pulsar_rate_in": "rate_in",
    "pulsar_rate_out": "rate_out",
    "pulsar_throughput_in": "throughput_in",
    "pulsar_throughput_out": "throughput_out",
    "pulsar_msg_backlog": "backlog",
    "pulsar_storage_backlog_size": "backlog_bytes",
    "pulsar_storage_size": "storage_bytes",
    "pulsar_storage_logical_size": "storage_bytes",
}
_PER_SUBSCRIPTION: Final = {
    "pulsar_subscription_back_log": "backlog",
    "pulsar_subscription_back_log_no_delayed": "backlog_due",
    "pulsar_subscription_unacked_messages": "unacked",
    "pulsar_subscription_consumers_count": "consumers",
    "pulsar_out_messages_total": "messages_out",
    "pulsar_out_bytes_total": "bytes_out",
    "pulsar_subscription_msg_rate_out": "rate_out",
    "pulsar_subscription_msg_throughput_out": "throughput_out",
    "pulsar_subscription_msg_rate_redeliver": "rate_redelivered",
    "pulsar_subscription_msg_ack_rate": "rate_acked",
}
_PER_COMPACTED: Final = {
    "pulsar_compaction_removed_event_count": "removed",
    "pulsar_compaction_succeed_count": "succeeded",
    "pulsar_compaction_failed_count": "failed",
    "pulsar_compaction_duration_time_in_mills": "duration_ms",
    "pulsar_compaction_compacted_entries_count": "entries",
    "pulsar_compaction_compacted_entries_size": "bytes",
}
_Row = tuple[str, Any]
"""Labels, and the object that has the numbers as attributes."""


class TopicSeries:
    """Add all topics' counters, then ask for the lines."""

    def __init__(self, cluster: str, *, per_topic: bool) -> None:
        self._cluster = quoted(cluster)
        self._per_topic = per_topic
        self._rows: list[_Row] = []
        self._sums: dict[str, SimpleNamespace] = {}
        """Sums by namespace."""
        self.topics = self.subscriptions = self.producers = self.consumers = 0

    def add(self, counters: TopicCounters) -> None:
        """Add one topic's numbers."""
        self.topics += 1
        self.subscriptions += len(counters.subscriptions)
        self.producers += counters.producers
        self.consumers += counters.consumers
        namespace = counters.topic.namespace.text
        sums = self._sums.get(namespace)
        if sums is None:
            sums = self._sums[namespace] = SimpleNamespace(
                topics=0, subscriptions=0, **dict.fromkeys(_PER_TOPIC.values(), 0)
            )
        sums.topics += 1
        if self._per_topic:
            labels = f"{self._of_namespace(namespace)},topic={quoted(counters.topic.fqn)}"
            self._rows.append((labels, counters))
            return
        sums.subscriptions += len(counters.subscriptions)
        for attribute in _ADDED:
            setattr(sums, attribute, getattr(sums, attribute) + getattr(counters, attribute))

    def _of_namespace(self, namespace: str) -> str:
        return f"cluster={self._cluster},namespace={quoted(namespace)}"

    def lines(self) -> Iterator[str]:
        """All lines, in pieces."""
        rows = [(self._of_namespace(namespace), sums) for namespace, sums in self._sums.items()]
        yield from _family("pulsar_topics_count", rows, attrgetter("topics"))
        if not self._per_topic:
            yield from _family("pulsar_subscriptions_count", rows, attrgetter("subscriptions"))
            yield from _of_rows(rows)
            return
        rows = self._rows
        yield from _family("pulsar_subscriptions_count", rows, lambda topic: len(topic.subscriptions))
        yield from _of_rows(rows)
        compacted = _inner(rows, lambda topic: [("", topic.compaction)] if topic.compaction else ())
        for name, attribute in _PER_COMPACTED.items():
            yield from _family(name, compacted, attrgetter(attribute))
        each = _inner(rows, lambda topic: [(f",subscription={quoted(s.name)}", s) for s in topic.subscriptions])
        for name, attribute in _PER_SUBSCRIPTION.items():
            yield from _family(name, each, attrgetter(attribute))


_ADDED: Final = frozenset(_PER_TOPIC.values())


def _of_rows(rows: Sequence[_Row]) -> Iterator[str]:
    for name, attribute in _PER_TOPIC.items():
        yield from _family(name, rows, attrgetter(attribute))
    yield from _family("pulsar_average_msg_size", rows, _average)


def _average(topic: TopicCounters) -> float:
    return topic.throughput_in / topic.rate_in if topic.rate_in else 0.0


def _inner(rows: Sequence[_Row], parts: Callable[[Any], Sequence[_Row]]) -> Callable[[], Iterator[_Row | None]]:
    """The rows of all topics, made anew for each name instead of kept; None for a topic without rows."""

    def made() -> Iterator[_Row | None]:
        for labels, topic in rows:
            held = parts(topic)
            if not held:
                yield None
            for more, part in held:
                yield labels + more, part

    return made


def _family(
    name: str, rows: Sequence[_Row] | Callable[[], Iterator[_Row | None]], value: Callable[[Any], float]
) -> Iterator[str]:
    """The lines of one name, in pieces; pieces are empty where many topics have no lines."""
    yield f"# TYPE {name} gauge\n"
    piece: list[str] = []
    for looked_at, row in enumerate(rows() if callable(rows) else rows, 1):
        if row is not None:
            labels, counted = row
            piece.append(f"{name}{{{labels}}} {value(counted)}\n")
        if looked_at % LINES_PER_PIECE == 0:
            yield "".join(piece)
            piece.clear()
    yield "".join(piece)


def quoted(text: str) -> str:
    """The escaped value of a label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
