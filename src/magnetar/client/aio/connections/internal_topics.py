"""Which internal topics there are for what an application names: partitions, or the topic itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.model.names import TopicName


async def partitions_of(lookup: TopicLookup, topic: str, *, create: bool = True) -> int:
    """Return the number of partitions, 0 for a topic without; ``create`` lets the broker make a missing topic."""
    if TopicName.parse(topic).is_partition:
        return 0
    return await lookup.partition_count(topic, create=create)


async def internal_topics(lookup: TopicLookup, names: Sequence[str], *, create: bool = True) -> list[str]:
    """Return the partitions of all topics that have some, and the others themselves, each once."""
    counts = await asyncio.gather(*(partitions_of(lookup, name, create=create) for name in names))
    found: list[str] = []
    for name, count in zip(names, counts, strict=True):
        found += [one.fqn for one in TopicName.parse(name).partitions(count)] if count else [name]
    return list(dict.fromkeys(found))
