"""Removal of partitioned topics with their partitions, and of whole namespaces by force."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.half_done import half_done
from magnetar.metadata.resources import Resources
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.system_topics import is_system_topic

AT_ONCE: Final = 20
"""Topics that are deleted in one turn of the loop."""


def batched(topics: Iterable[TopicName]) -> Iterator[list[TopicName]]:
    """Split ``topics`` into lists of at most ``AT_ONCE``."""
    rest = iter(topics)
    while some := list(islice(rest, AT_ONCE)):
        yield some


def is_empty(topics: TopicsPort, resources: Resources, namespace: NamespaceName) -> bool:
    """Whether the namespace holds no topic of a user."""
    no_topics = all(map(is_system_topic, topics.topics_of(namespace)))
    return no_topics and not resources.partitioned.of_namespace(namespace)


async def remove_partitioned(topics: TopicsPort, resources: Resources, topic: TopicName, *, force: bool) -> None:
    """Remove a partitioned topic.

    Unless ``force``, raises PreconditionFailedError if a client is connected, and removes nothing. Its schema stays if
    there is a topic of the same name in the other domain, whose schema is the same. A disk that refuses the first step
    refuses all; about a later one the error says what is gone.
    """
    existing = topics.partitions_of(topic)
    if not force and any(map(topics.clients_of, existing)):
        raise PreconditionFailedError("Topic has active producers/subscriptions")
    with resources.partitioned.removal(topic):
        # what could be found by topics of these names, should only some of the steps be made, goes first
        await resources.forget_topic(topic, existing)
        # then partitions: after a crash in between the parent is still there, and the removal can be asked for again
        with half_done(lambda: f"the partitions of {topic.fqn}, its policies and grants on it are deleted"):
            # one whose making had begun may be among them by now
            for some in batched(topics.partitions_of(topic)):
                await asyncio.gather(
                    *(topics.delete_topic(one, force=force) for one in some if topics.topic_exists(one))
                )
            alone = not topics.topic_exists(topic.namesake) and not resources.partitioned.count(topic.namesake)
            await resources.delete_partitioned(topic, with_schema=alone)


async def remove_namespace(topics: TopicsPort, resources: Resources, namespace: NamespaceName) -> None:
    """Remove a namespace with everything in it; the error of a disk that refuses a step says how many topics are
    gone."""
    before = sum(1 for _ in topics.topics_of(namespace))

    def done() -> str:
        gone = before - sum(1 for _ in topics.topics_of(namespace))
        return f"{gone} of {before} topics and partitions of {namespace.text} are deleted" if gone > 0 else ""

    with resources.namespaces.removal(namespace), half_done(done):
        for topic in resources.partitioned.of_namespace(namespace):
            await remove_partitioned(topics, resources, topic, force=True)
        # system topics go last: events about the others' end would create them again
        for last in (False, True):
            for some in batched(one for one in topics.topics_of(namespace) if is_system_topic(one) == last):
                await asyncio.gather(
                    *(topics.delete_topic(one, force=True) for one in some if topics.topic_exists(one))
                )
        await resources.delete_namespace(namespace)
