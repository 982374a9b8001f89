"""Rates for statistics: what the counters gained in the last period, per second (rule 11.4.13).

Nothing is done per message. Every ``statsUpdateFrequencyInSecs`` one timer reads the counters of all topics, producers,
subscriptions and consumers, divides what they gained by the time that went by, and remembers them for the next time.
What is younger than the last look has a rate of 0, as in Apache Pulsar.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscription_stats import Totals
from magnetar.broker.topic.throughput import UNSEEN, Pace, Paced, Throughput
from magnetar.broker.topic.topic import Topic
from magnetar.runtime.host_load import HostLoad, Usage
from magnetar.runtime.tasks import TaskGroup, in_turns


class Missed(NamedTuple):
    """Reads of one topic that the cache could not answer, per second; failures of the whole period."""

    entries: float = 0.0
    bytes: float = 0.0
    failures: int = 0
    reads: int = 0
    """Those that succeeded, in the whole period."""


_NOT_MISSED: Final = Missed()


class Rates:
    """Owns the timer. What it saw of a topic or client is kept there (``pace``): nothing here holds what is gone."""

    def __init__(self, service: BrokerService, period_seconds: float) -> None:
        self._service = service
        self._period = period_seconds
        self._missed: dict[int, Missed] = {}
        self._host = HostLoad()
        self.host: dict[str, Usage] = {}
        """How much of the machine was used in the last period."""
        self.loads = 0.0
        """Topics that were loaded per second."""
        self._loaded = 0
        self._looked = 0.0
        """The loop time of the last look."""
        self._tasks = TaskGroup("rates")

    def of(self, thing: Paced) -> Throughput:
        """The rates per second of a Topic, Producer, Subscription or Consumer."""
        return thing.pace.rate

    def missed(self, log_id: int) -> Missed:
        """What the disk was asked for by readers of that log."""
        return self._missed.get(log_id, _NOT_MISSED)

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._looked = asyncio.get_running_loop().time()
        self._tasks.repeat(self._period, self.look, "look")

    async def close(self) -> None:
        """End."""
        await self._tasks.close()

    async def look(self) -> None:
        """Read all counters once."""
        now = asyncio.get_running_loop().time()
        seconds = now - self._looked
        if seconds <= 0:
            return
        self._looked = now
        self._end_period(seconds)
        topics: list[Topic | NonPersistentTopic] = [
            *self._service.topics.values(),
            *self._service.nonpersistent_topics.by_name.values(),
        ]
        # one topic may have as much to look at as all others together
        async for topic, thing, flow in in_turns(_flows(topics)):
            before, rate = thing.pace
            if flow != before:
                thing.pace = Pace(flow, Throughput(*[(a - b) / seconds for a, b in zip(flow, before, strict=True)]))
                group = topic.policies.resource_group if thing is topic else None
                if group is not None:
                    used = [int(a - b) for a, b in zip(flow[:4], before[:4], strict=True)]
                    self._service.policies.groups.use(group.name, "Publish", used[0], used[1])
                    self._service.policies.groups.use(group.name, "Dispatch", used[2], used[3])
            elif rate is not UNSEEN.rate:
                thing.pace = Pace(flow)

    def _end_period(self, seconds: float) -> None:
        service = self._service
        self.host = self._host.look()
        loaded = service.activity.loads.count
        self.loads, self._loaded = (loaded - self._loaded) / seconds, loaded
        service.activity.turn()
        service.store.journal.latency.summary.turn()
        missed, service.store.reader.missed = service.store.reader.missed, {}
        self._missed = {
            log: Missed(entries / seconds, size / seconds, failures, reads)
            for log, (entries, size, failures, reads) in missed.items()
        }


def _flows(
    topics: Iterable[Topic | NonPersistentTopic],
) -> Iterator[tuple[Topic | NonPersistentTopic, Paced, Throughput]]:
    """All that has rates, with its topic and its counters, read when it is reached."""
    for topic in topics:
        if isinstance(topic, Topic):
            topic.results.turn()
        sent = topic.sent()
        entries = topic.log.entries_added if isinstance(topic, Topic) else topic.entries_in
        yield topic, topic, Throughput(topic.msg_in, topic.bytes_in, sent.messages, sent.bytes, entries_in=entries)
        for producer in topic.producers:
            counted = Throughput(
                producer.msg_in, producer.bytes_in, dropped=producer.msg_dropped, chunks=producer.chunks_in
            )
            yield topic, producer, counted
        for subscription in topic.loaded_subscriptions():
            marks = subscription.cursor.times_written if isinstance(subscription, Subscription) else 0
            yield topic, subscription, _delivered(subscription.counters(), subscription.dropped, marks)
            for consumer in list(subscription.consumers):
                yield topic, consumer, _delivered(consumer)


def _delivered(counted: Totals | Consumer, dropped: int = 0, marks: int = 0) -> Throughput:
    expired = counted.expired if isinstance(counted, Totals) else 0
    return Throughput(
        0, 0, counted.messages_out, counted.bytes_out, counted.messages_redelivered, counted.acked_entries, dropped,
        counted.chunks_out, 0, counted.entries_out, expired, marks,
    )  # fmt: skip
