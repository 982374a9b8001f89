"""Partitions are created whole: each begins with the durable subscriptions of its topic, also after a crash.

A topic is grown in three steps: the metadata names the new partitions and notes the first that may not be there yet;
each partition is made with the durable subscriptions that the first of the old ones has, from its start; when all of it
is on disk the note is removed. A message cannot come between: a noted partition is completed before its first use.
After a crash the note is still there, and what it names is made while clients are served already (rule 2.14).

However many are to be made, a few are made at a time, each few durable before the next, and between them others are
served, the broker may stop, and the topic may be deleted, which ends it. What asks for more than a broker serves (an
earlier version took any number) is not begun: its partitions come with their first use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from magnetar.broker.topic.topic import Topic
from magnetar.metadata.partitioned import PartitionedTopics
from magnetar.model.errors import MagnetarError, ServiceNotReadyError, TopicNotFoundError
from magnetar.model.names import TopicName
from magnetar.model.policies import PARTITIONS_MAX
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.runtime.callbacks import answered, settled
from magnetar.runtime.tasks import TaskGroup

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
"""Partitions that are created in one turn of the loop; a few milliseconds."""

Loader = Callable[[TopicName], Topic | None]


class PartitionCreator:
    """Creates partitions; ``find`` loads a topic that exists, ``make`` creates one."""

    def __init__(self, partitioned: PartitionedTopics, find: Loader, make: Callable[[TopicName], Topic]) -> None:
        self._partitioned = partitioned
        self._find = find
        self._make = make
        self._tasks = TaskGroup("partitions")
        self._ending = False

    def make(self, name: TopicName, first: int, end: int) -> list[Topic]:
        """Make partitions ``first`` to ``end - 1`` of a topic whose metadata names them.

        Those that exist stay as they are, except that noted ones get the subscriptions that they lack.
        """
        noted = self._partitioned.unmade(name)
        older = range(min(0 if noted is None else noted, PARTITIONS_MAX))
        like = next((topic for index in older if (topic := self._find(name.partition(index)))), None)
        return [
            self._whole(name.partition(index), None if noted is None or index < noted else like)
            for index in range(first, end)
        ]

    def used(self, partition: TopicName) -> Topic | None:
        """Complete a partition that a client wants and that is noted; returns None if it is not noted."""
        first = self._partitioned.unmade(partition.parent)
        if first is None or not first <= partition.partition_index < self._partitioned.count(partition.parent):
            return None
        return self.make(partition.parent, partition.partition_index, partition.partition_index + 1)[0]

    def _whole(self, partition: TopicName, like: Topic | None) -> Topic:
        topic = self._find(partition) or self._make(partition)
        if like is not None:
            for subscription in like.durable_subscriptions():
                if subscription not in topic.subscriptions and subscription != COMPACTION_SUBSCRIPTION:
                    topic.create_subscription(subscription, topic.log.first)
        return topic

    async def make_durably(self, name: TopicName, first: int, end: int) -> None:
        """Create partitions as :meth:`make` does, some at a time.

        Raises TopicNotFoundError if the topic is removed meanwhile, ServiceNotReadyError if the broker stops.
        """
        for index in range(first, end, AT_ONCE):
            if self._ending:
                raise ServiceNotReadyError(f"the broker stops: {name.fqn} gets its other partitions at the next start")
            if self._partitioned.count(name) < end or self._partitioned.leaving(name):
                raise TopicNotFoundError(f"Topic {name.fqn} was deleted while its partitions were being made")
            made = self.make(name, index, min(index + AT_ONCE, end))
            await asyncio.gather(*(answered(topic.when_durable) for topic in made))
            # their subscriptions must be durable, too
            await settled(made[-1].log.barrier)

    async def make_noted(self, name: TopicName) -> None:
        """Create what the metadata notes as missing, then remove the note. Raises as :meth:`make_durably`."""
        first, end = self._partitioned.unmade(name), self._partitioned.count(name)
        if first is not None:
            await self.make_durably(name, first, end)
            await self._partitioned.made(name, end)

    def start(self) -> None:
        """Create the partitions that are noted, while the broker serves; needs a running loop."""
        if self._partitioned.all_unmade():
            self._tasks.start(self.finish(), "finish")

    def end(self) -> None:
        """Begin nothing more: callers that wait are answered soon, and the next start goes on."""
        self._ending = True

    async def close(self) -> None:
        """Stop; the next start continues."""
        self.end()
        await self._tasks.close()

    async def finish(self) -> int:
        """Complete the creation that a crash or the end of the broker interrupted; returns the number of topics."""
        pending = self._partitioned.all_unmade()
        for name, first in pending.items():
            count = self._partitioned.count(name)
            if count > PARTITIONS_MAX:
                log.error(
                    "%s is said to have %d partitions, a broker serves %d: they are made when they are used; delete it",
                    name.fqn, count, PARTITIONS_MAX, extra={"topic": name.fqn},
                )  # fmt: skip
                continue
            known = {"topic": name.fqn}
            log.warning(
                "%s: making its partitions %d to %d, which was interrupted", name.fqn, first, count - 1, extra=known
            )
            try:
                await self.make_noted(name)
            except MagnetarError as error:
                text = "%s: its partitions are not all made, the next start goes on with it: %s"
                log.error(text, name.fqn, error, extra=known)
        return len(pending)
