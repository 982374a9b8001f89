"""No partition is half made: each begins with the durable subscriptions of its topic, whatever crashes.

A topic is grown in three steps: the metadata names the new partitions and notes the first that may not be there yet;
each partition is made with the durable subscriptions that the first of the old ones has, from its start; when all of it
is on disk the note is removed. A message cannot come between: whoever uses a noted partition has it made whole first.
After a crash the note is still there, and what it names is made whole before the first client is let in (SEMANTICS
2.14).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from magnetar.broker.topic.compaction.compactor import SUBSCRIPTION as COMPACTION
from magnetar.broker.topic.topic import Topic
from magnetar.metadata.partitioned import PartitionedTopics
from magnetar.model.errors import MetadataError
from magnetar.model.names import TopicName

log = logging.getLogger(__name__)

Loader = Callable[[TopicName], Topic | None]


class PartitionMaker:
    """``find`` loads a topic that exists, ``make`` one that does not."""

    def __init__(self, partitioned: PartitionedTopics, find: Loader, make: Callable[[TopicName], Topic]) -> None:
        self._partitioned = partitioned
        self._find = find
        self._make = make

    def make(self, name: TopicName, first: int, end: int) -> list[Topic]:
        """Make partitions ``first`` to ``end - 1`` of a topic whose metadata names them.

        Those that exist stay as they are, except that noted ones get the subscriptions that they lack.
        """
        noted = self._partitioned.unmade(name)
        older = range(0 if noted is None else noted)
        like = next((topic for index in older if (topic := self._find(name.partition(index)))), None)
        return [
            self._whole(name.partition(index), None if noted is None or index < noted else like)
            for index in range(first, end)
        ]

    def used(self, partition: TopicName) -> Topic | None:
        """Somebody wants a partition that does not exist: made whole if it is noted; None: it is not."""
        first = self._partitioned.unmade(partition.parent)
        if first is None or not first <= partition.partition_index < self._partitioned.count(partition.parent):
            return None
        return self.make(partition.parent, partition.partition_index, partition.partition_index + 1)[0]

    def _whole(self, partition: TopicName, like: Topic | None) -> Topic:
        topic = self._find(partition) or self._make(partition)
        if like is not None:
            for subscription in like.durable_subscriptions():
                if subscription not in topic.subscriptions and subscription != COMPACTION:
                    topic.create_subscription(subscription, topic.log.first)
        return topic

    def finish(self, barrier: Callable[[Callable[[], None]], None]) -> int:
        """After a start: make whole what is noted, and remove the notes once ``barrier`` says it is durable; how many.

        A note that names a topic which grows again meanwhile stays until that is done, too.
        """
        pending = self._partitioned.all_unmade()
        for name, first in pending.items():
            count = self._partitioned.count(name)
            log.warning("%s: making its partitions %d to %d, which a crash interrupted", name.fqn, first, count - 1)
            self.make(name, first, count)
        ends = {name: self._partitioned.count(name) for name in pending}

        def durable() -> None:
            for name, end in ends.items():
                try:
                    self._partitioned.made(name, end)
                except MetadataError:
                    log.exception("%s: its partitions are made; the note of it is removed at the next start", name.fqn)

        if pending:
            barrier(durable)
        return len(pending)
