"""Partitions are created whole: each begins with the durable subscriptions of its topic, also after a crash.

A topic is grown in three steps: the metadata names the new partitions and notes the first that may not be there yet;
each partition is made with the durable subscriptions that the first of the old ones has, from its start; when all of it
is on disk the note is removed. A message cannot come between: a noted partition is completed before its first use.
After a crash the note is still there, and what it names is made while clients are served already (rule 2.14).

A partition is made without being loaded, as after a start: it takes no memory beside its log, and the time after which
unused topics are deleted begins when a client or an operation loads it (rule 4.7.6).

However many are to be made, a few are made at a time, each few durable before the next, and between them others are
served, the broker may stop, and the topic may be deleted, which ends it. What asks for more than a broker serves (an
earlier version took any number) is not begun: its partitions come with their first use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from magnetar.broker.topic.topic import Topic
from magnetar.metadata.partitioned import PartitionedTopics
from magnetar.model.errors import MagnetarError, PersistenceError, ServiceNotReadyError, TopicNotFoundError
from magnetar.model.names import TopicName
from magnetar.model.policies import PARTITIONS_MAX
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.runtime.callbacks import settled
from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore

log = logging.getLogger(__name__)

AT_ONCE: Final = 20
"""Partitions that are created in one turn of the loop; a few milliseconds."""
DURABLE_SECONDS: Final = 30.0
"""So long the disk may take for them before whoever asked for them is told."""


class PartitionCreator:
    """Creates partitions in ``store``; ``loaded`` are the topics that are in use.

    ``enter`` has a topic among those that exist, or raises ServiceNotReadyError while it is being deleted.
    """

    def __init__(
        self, partitioned: PartitionedTopics, store: LedgerStore, loaded: Mapping[str, Topic],
        enter: Callable[[TopicName], None],
    ) -> None:  # fmt: skip
        self._partitioned = partitioned
        self._store = store
        self._loaded = loaded
        self._enter = enter
        self._tasks = TaskGroup("partitions")
        self._ending = False

    def make(self, name: TopicName, first: int, end: int) -> None:
        """Make partitions ``first`` to ``end - 1`` of a topic whose metadata names them; loads none.

        Those that exist stay as they are, except that noted ones get the subscriptions that they lack. Raises
        ServiceNotReadyError while one of them is being deleted.
        """
        noted = self._partitioned.unmade(name)
        older = range(min(0 if noted is None else noted, PARTITIONS_MAX))
        old = (self._store.find_log(name.partition(index).fqn) for index in older)
        like = next((found for found in old if found is not None), None)
        for index in range(first, end):
            self._whole(name.partition(index), None if noted is None or index < noted else like)

    def used(self, partition: TopicName) -> None:
        """Complete a partition that a client wants, if it is noted. Raises as :meth:`make`."""
        first = self._partitioned.unmade(partition.parent)
        if first is None or not first <= partition.partition_index < self._partitioned.count(partition.parent):
            return
        self.make(partition.parent, partition.partition_index, partition.partition_index + 1)

    def _whole(self, partition: TopicName, like: ManagedLedger | None) -> None:
        self._enter(partition)
        made = self._store.unopened_log(partition.fqn)
        for subscription, cursor in () if like is None else list(like.cursors.items()):
            if subscription not in made.cursors and subscription != COMPACTION_SUBSCRIPTION:
                self._subscribe(partition, made, subscription, {**cursor.properties})

    def _subscribe(
        self, partition: TopicName, made: ManagedLedger, subscription: str, properties: dict[str, Any]
    ) -> None:
        topic = self._loaded.get(partition.fqn)
        if topic is None:
            made.open_cursor(subscription, made.first, properties=properties)
        elif subscription not in topic.subscriptions:
            topic.create_subscription(subscription, made.first, properties=properties)

    async def make_durably(self, name: TopicName, first: int, end: int) -> None:
        """Create partitions as :meth:`make` does, some at a time.

        Raises TopicNotFoundError if the topic is removed meanwhile, ServiceNotReadyError if the broker stops,
        PersistenceError if the disk does not take them.
        """
        for index in range(first, end, AT_ONCE):
            if self._ending:
                raise ServiceNotReadyError(f"the broker stops: {name.fqn} gets its other partitions at the next start")
            if self._partitioned.count(name) < end or self._partitioned.leaving(name):
                raise TopicNotFoundError(f"Topic {name.fqn} was deleted while its partitions were being made")
            self.make(name, index, min(index + AT_ONCE, end))
            await self._on_disk(name, end)

    async def _on_disk(self, name: TopicName, count: int) -> None:
        """What is made is written until the disk takes it, so that a write that fails refuses nothing of it."""
        try:
            async with asyncio.timeout(DURABLE_SECONDS):
                await settled(lambda done, _: self._store.journal.barrier(done))
        except TimeoutError:
            raise PersistenceError(
                f"{name.fqn} is there with its {count} partitions, but not all of them are on the disk after "
                f"{DURABLE_SECONDS:g} s; they are made when they are used, or with the next start"
            ) from None

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
