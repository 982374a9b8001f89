"""A topic's part in compaction: starts runs, holds the current view, switches to the next, removes the old one.

The cursor ``__compaction`` is the one truth on disk (decision 008): its mark keeps what is not compacted yet from being
trimmed, its properties name the view. Status and statistics live in memory, as in Apache Pulsar, where a topic that was
loaded again has NOT_RUN.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from typing_extensions import override

from magnetar.broker.topic.compaction.compacted_source import CompactedSource
from magnetar.broker.topic.compaction.compacted_view import CompactedView
from magnetar.broker.topic.compaction.compaction_run import CompactionRun
from magnetar.broker.topic.compaction.compaction_stats import CompactionStats
from magnetar.broker.topic.compaction.view_adoption import CompactionPlan, Pieces, adopt
from magnetar.broker.topic.compaction.view_writer import ViewWriter
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.compaction.compaction_cursor import VIEW_PROPERTY, ViewFacts, view_name
from magnetar.model.errors import ConflictError, MagnetarError, ServiceNotReadyError
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.runtime.clock import Clock
from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore

log = logging.getLogger(__name__)


class Compactor(TopicFeature):
    """Made for a topic that was compacted, is to be, or has a compacted reader. Lives on the event loop."""

    def __init__(
        self, topic_log: ManagedLedger, store: LedgerStore, subscriptions: Subscriptions, clock: Clock
    ) -> None:
        self._log = topic_log
        self._store = store
        self._subscriptions = subscriptions
        self._clock = clock
        self._tasks = TaskGroup("compaction")
        self._running: asyncio.Task[None] | None = None
        self._sources: dict[str, tuple[Subscription, CompactedSource]] = {}
        self._replaced: list[CompactedView] = []
        """Old views that are still being read."""
        self._oldest = 1
        self._generation = 0
        self._closed = False
        self.status = "NOT_RUN"
        self.last_error = ""
        self.stats = CompactionStats()
        self.view: CompactedView | None = None
        self._recover()

    # what is on disk ---------------------------------------------------------------------------------------------

    @property
    def _cursor(self) -> Cursor | None:
        return self._log.cursors.get(COMPACTION_SUBSCRIPTION)

    def _recover(self) -> None:
        cursor = self._cursor
        if cursor is None:
            return
        value = cursor.properties.get(VIEW_PROPERTY)
        if isinstance(value, list):  # a text is what users of older versions wrote under that name
            facts = ViewFacts.from_property(value)
            self._generation, self._oldest = facts.generation, facts.oldest
            found = self._store.find_log(self._name(facts.generation))
            if found is not None:
                self.view = CompactedView(found, facts)
                cursor.acknowledge_until(facts.horizon - 1)  # a crash may have come between that and the property
            else:
                log.error(
                    "%s: the compacted view up to ordinal %d is gone; what was trimmed is lost to compacted readers",
                    self._log.name, facts.horizon, extra={"topic": self._log.name},
                )  # fmt: skip
        self._sweep()

    def _name(self, generation: int) -> str:
        return view_name(self._log.id, generation)

    def _sweep(self) -> None:
        """Delete views that are not needed: replaced ones, and one of which only a part was written."""
        kept = {view.facts.generation for view in self._replaced}
        beyond = self._generation + 1
        for generation in range(self._oldest, beyond if self._running is not None else beyond + 1):
            if generation not in kept and generation != self._generation:
                self._delete(generation)
        self._oldest = min(kept, default=self._generation) or 1

    def _delete(self, generation: int) -> None:
        name = self._name(generation)
        if name in self._store:
            self._store.delete_log(name)

    # reading -----------------------------------------------------------------------------------------------------

    def source(self, subscription: Subscription) -> CompactedSource:
        """What the consumers of this subscription read; the first one begins with the view of today."""
        known = self._sources.get(subscription.name)
        if known is not None:
            if known[0] is not subscription or not subscription.consumers:
                known[1].release()
            if known[0] is subscription:
                return known[1]
        source = CompactedSource(self._log, self)
        self._sources[subscription.name] = (subscription, source)
        return source

    def detached_source(self) -> CompactedSource:
        """A source for a search or a run; release it afterwards."""
        return CompactedSource(self._log, self)

    def unpinned(self) -> None:
        """A source has left a view."""
        if self._replaced and not self._closed:
            before = len(self._replaced)
            self._replaced = [view for view in self._replaced if view.pins]
            if len(self._replaced) < before:
                self._sweep()

    def upkeep(self) -> None:
        """Now and then: let go of views for subscriptions without consumers."""
        subscriptions = self._subscriptions
        for name, (subscription, source) in list(self._sources.items()):
            if not subscription.consumers:
                source.release()
                if subscriptions.get(name) is not subscription:
                    del self._sources[name]

    # running -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Open the compaction cursor if there is none: from now on entries that are not compacted are kept."""
        if self._cursor is None:
            if self._closed:
                raise ServiceNotReadyError("Topic is temporarily unavailable")
            first = self._log.first
            self._subscriptions.open(
                COMPACTION_SUBSCRIPTION, durable=True, ordinal=lambda: first, properties={}, done=_nothing
            )  # fmt: skip

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._running is not None

    def begin(self, *, retain_keyless: bool, keep_index: bool = False) -> None:
        """Begin a run. Raises ConflictError while there is one."""
        self._begin(lambda: self._compact(retain_keyless, keep_index))

    def _begin(self, work: Callable[[], Awaitable[int]]) -> None:
        if self._running is not None:
            raise ConflictError("Compaction already in progress")
        self.prepare()
        # what Apache Pulsar shows, where compaction is a consumer
        self._subscriptions[COMPACTION_SUBSCRIPTION].sub_type = SubType.Exclusive
        self.status, self.last_error = "RUNNING", ""
        started = self._clock.now_ms()
        self._running = self._tasks.start(self._run(work), self._log.name)
        # not at the end of the coroutine: one that is cancelled before its first step never comes there
        self._running.add_done_callback(lambda _: self._ended(started))

    async def wait(self) -> None:
        """Return when no run is under way."""
        if self._running is not None:
            await asyncio.wait({self._running})

    def _ended(self, started_ms: int) -> None:
        self._running = None
        self.stats.duration_ms = self._clock.now_ms() - started_ms
        if self.status == "RUNNING":
            self._failed("compaction was stopped")
        if not self._closed:
            self._sweep()

    def _failed(self, why: str) -> None:
        self.status, self.last_error = "ERROR", why
        self.stats.failures += 1
        self.stats.failed_ms = self._clock.now_ms()

    def begin_at(self, threshold: int, *, retain_keyless: bool, keep_index: bool = False) -> None:
        """Begin a run if more than so many bytes are not compacted yet."""
        cursor = self._cursor
        if cursor is not None and self._running is None and bytes_behind(self._log, cursor.mark_delete) > threshold:
            self.begin(retain_keyless=retain_keyless, keep_index=keep_index)

    async def _run(self, work: Callable[[], Awaitable[int]]) -> None:
        try:
            removed = await work()
        except Exception as error:
            known = isinstance(error, MagnetarError)
            name, trace = self._log.name, None if known else error
            log.error("%s: compaction failed: %s", name, error, exc_info=trace, extra={"topic": name})
            self._failed(str(error))
        else:
            stats, self.status = self.stats, "SUCCESS"
            stats.removed = removed
            stats.successes += 1
            stats.succeeded_ms = self._clock.now_ms()

    async def _compact(self, retain_keyless: bool, keep_index: bool) -> int:
        topic_log, view, dispatch_rules = self._log, self.view, self._subscriptions.rules
        horizon = self._readable_end()
        if horizon <= (topic_log.first if view is None else view.horizon):
            return 0
        self._delete(self._generation + 1)
        target = self._store.open_log(self._name(self._generation + 1))
        source = self.detached_source()
        run = CompactionRun(
            source, target, horizon, dispatch_rules, retain_keyless=retain_keyless, keep_index=keep_index
        )
        try:
            await run.run()
        finally:
            source.release()
            run.note(self.stats)
        facts = ViewFacts(
            self._generation + 1, self._oldest, horizon, target.table.ledgers[0].id, tuple(run.ledgers)
        )  # fmt: skip
        await self._switch(CompactedView(target, facts))
        return run.removed

    def _readable_end(self) -> int:
        horizon = self._log.end
        for rule in self._subscriptions.rules:
            # what a consumer may not see yet (open transactions) is not compacted yet either
            horizon = min(horizon, rule.readable_end(horizon))
        return horizon

    # runs of others ----------------------------------------------------------------------------------------------

    def plan(self) -> CompactionPlan:
        """What a job would have to do now; from now on nothing of it is trimmed. Raises ConflictError during a run."""
        if self._running is not None:
            raise ConflictError("Compaction already in progress")
        self.prepare()
        log, view = self._log, self.view
        start = log.first if view is None else view.horizon
        horizon = max(start, min(self._readable_end(), log.table.ledgers[-1].ordinal))
        return CompactionPlan(self._generation, "" if view is None else view.log.name, start, horizon)

    def begin_adoption(self, generation: int, horizon: int, removed: int, pieces: Pieces) -> None:
        """Make a job's result the view, as a run of its own. Raises ConflictError if it is of another past."""
        start = self._log.first if self.view is None else self.view.horizon
        if self._cursor is None:
            raise ConflictError(f"{self._log.name} has no subscription {COMPACTION_SUBSCRIPTION}: ask for a plan first")
        if generation != self._generation:
            raise ConflictError(
                f"{self._log.name} was compacted since the job began: it has view {self._generation}, the job "
                f"began with {generation}"
            )
        if not start < horizon <= self._readable_end():
            raise ConflictError(f"{self._log.name} cannot be compacted up to {horizon}, only beyond {start}")
        self._begin(lambda: self._adopt(horizon, removed, pieces))

    async def _adopt(self, horizon: int, removed: int, pieces: Pieces) -> int:
        self._delete(self._generation + 1)
        target = self._store.open_log(self._name(self._generation + 1))
        writer = ViewWriter(target)
        await adopt(self._log, self.view, horizon, pieces, writer)
        facts = ViewFacts(
            self._generation + 1, self._oldest, horizon, target.table.ledgers[0].id, tuple(writer.ledgers)
        )  # fmt: skip
        await self._switch(CompactedView(target, facts))
        return removed

    async def _switch(self, view: CompactedView) -> None:
        """The new view is durable: one record, and it is the one."""
        cursor = self._cursor
        if cursor is None:
            raise ConflictError(f"subscription {COMPACTION_SUBSCRIPTION} was deleted while compaction ran")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        facts = view.facts

        def durable() -> None:
            # here rather than in the task: even if that is cancelled, this view is the one that a start would find
            if cursor.deleted or self._closed:
                return
            old, self.view = self.view, view
            self._generation = facts.generation
            if old is not None and old.pins:
                self._replaced.append(old)
            # not before: what the view has may be trimmed from now on
            self._subscriptions[COMPACTION_SUBSCRIPTION].skip_until(facts.horizon - 1)
            if not answer.done():
                answer.set_result(None)

        others = {name: value for name, value in cursor.properties.items() if name != VIEW_PROPERTY}
        cursor.set_properties({**others, VIEW_PROPERTY: facts.to_property()}, durable)
        await answer

    # the end -----------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """The subscription or the topic is being deleted: nothing compacted remains, in the same group."""
        self._stop()
        self.view, self._replaced = None, []
        for generation in range(self._oldest, self._generation + 2):
            self._delete(generation)
        self._oldest, self._generation = 1, 0

    @override
    def subscription_gone(self, name: str) -> None:
        if name == COMPACTION_SUBSCRIPTION:
            self.forget()

    @override
    def close(self) -> None:
        """The topic is unloaded; a run under way ends, and what it wrote goes at the next load."""
        self._closed = True
        self._stop()
        self._sources.clear()

    def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()


def _nothing() -> None: ...
