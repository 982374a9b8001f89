"""Which internal topics a consumer has now, and how it follows them (rules 6.8.3, 6.8.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.topic_pattern import PatternTopics, WantedTopics, mode_of
from magnetar.client.aio.topics.consumer_options import ConsumerOptions
from magnetar.client.errors import ClientError

Find = Callable[[], Awaitable[list[str]]]
"""Says which internal topics there are now."""


def topics_by_pattern(lookup: TopicLookup, pattern: str, mode: str, topics_max: int | None) -> Find:
    """Return what finds the topics that match; ``mode`` is one of the official client's. Raises InvalidValueError."""
    wanted, bound, asked = WantedTopics.parse(pattern), PatternTopics(pattern, topics_max), mode_of(mode)

    async def find() -> list[str]:
        return bound.choose(wanted.matching(await lookup.topics_of(wanted.namespace, asked)))

    return find


def with_shared_queue(options: ConsumerOptions, topics: int, across: int) -> ConsumerOptions:
    """Return options by which all internal topics together queue ``across`` messages at most; 0: no such bound."""
    if not options.limits.queue_size or topics < 2 or across <= 0:
        return options
    size = max(min(options.limits.queue_size, across // topics), 1)
    return replace(options, limits=replace(options.limits, queue_size=size))


async def follow(consumer: Consumer, find: Find, *, leave: bool) -> None:
    """Subscribe to what is found beyond what the consumer has; with ``leave`` also drop what is found no more."""
    now = await find()
    known = set(consumer.topics)
    for one in now:
        if one not in known:
            with suppress(ClientError):  # another one may be open to us; this one is tried again
                await consumer.add([one])
    if leave:
        await consumer.drop(known.difference(now))
