"""The streaming source.

Offsets are read positions; ranges between two offsets are read by the tasks, as in batch mode. Where the query began is
kept at the broker by a durable subscription per topic-partition: Spark asks for the initial offset again when batch 0
is repeated, and an answer that moves with the topic would lose what lies between. It also keeps what is not processed
from being trimmed, and shows the backlog to the broker's tools.

Spark says that a micro-batch is processed one micro-batch late (`commit`), and not at all of the last one. But it asks
for the next end (`latestOffset`) only when everything before the start that it gives is processed and noted in its
checkpoint. So that is where the subscriptions are moved to, and a query that idles shows no backlog. (Asynchronous
progress tracking would break this; Spark refuses it for Python sources.)

The option ``subscription`` is demanded, at ``load()`` already (`gate`): it is the durable name of where this query
began. With a new checkpoint and an old subscription the query begins where the subscription stands; ``startingOffsets``
counts when it is new.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import SystemClock, steady_seconds
from magnetar.spark.offset_json import Cuts, cuts_of, from_json, tasks_of, to_json
from magnetar.spark.options.limits import ReadLimits, TaskSizes
from magnetar.spark.options.source_options import SourceOptions, check_stream
from magnetar.spark.progress import lag_json
from magnetar.spark.repeatability import note_source_read
from magnetar.spark.source.planning.planner import plan
from magnetar.spark.source.planning.rate_estimator import RateEstimator
from magnetar.spark.source.planning.topic_tracker import TopicTracker
from magnetar.spark.source.reading.read_task import ReadTask, read_task

log = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of ``spark.readStream``."""

    def __init__(self, options: SourceOptions) -> None:
        self._subscription = check_stream(options)
        self._options = options
        self._tracker: TopicTracker | None = None
        self._target: dict[str, ReadPosition] | None = None
        self._end: Mapping[str, ReadPosition] | None = None
        self._other: str | None = None
        """A subscription that the query used before."""
        self._planned = steady_seconds()
        self._pace = RateEstimator(options.target_trigger) if options.target_trigger else None

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends the reader to the workers, which only read: sockets stay here.
        return {**self.__dict__, "_tracker": None}

    def _live(self) -> TopicTracker:
        if self._tracker is None:
            self._tracker = TopicTracker(self._options, self._subscription)
        return self._tracker

    def initialOffset(self) -> dict[str, Any]:
        """Return where the query began: the same until the first micro-batch is committed."""
        return to_json(self._live().initial(), subscription=self._subscription)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limits of the options, as far as Spark has a word for them; `latestOffset` goes by the options."""
        messages, size = self._limits()
        if messages:
            return ReadMaxRows(messages)
        if size:
            return ReadMaxBytes(size)
        if self._options.least_messages:
            return ReadMinRows(self._options.least_messages)
        return ReadMaxBytes(self._options.backlog_bytes) if self._options.backlog_bytes else ReadAllAvailable()

    def _limits(self) -> ReadLimits:
        """Return the limits of the next micro-batch."""
        return self._options.limits if self._pace is None else self._pace.within(self._options.limits)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next micro-batch.

        It is never before ``start``; with Trigger.AvailableNow never after what there was at first, or a bound.
        """
        if self._target is None and self._options.ending is not None:
            raise InvalidValueError(
                "the options 'endingOffsets' and 'endingTime' are for queries that end: use "
                ".trigger(availableNow=True), or leave them out"
            )
        live, positions = self._live(), from_json(start)
        self._look_for_another(start)
        if self._pace is not None and positions == self._end:
            self._pace.finish(steady_seconds())
        # Also holds what has come since the last run, from its beginning.
        latest = live.latest()
        if self._target is not None:
            latest = self._target
        live.check_there(positions)
        live.move_to(positions)
        end = {**positions, **{name: max(last, positions.get(name, START)) for name, last in latest.items()}}
        if end == positions or self._waits(live, positions, end):
            self._end = positions
            return start
        # Trigger.Once asks for everything, whatever the options say.
        limited = not isinstance(limit, ReadAllAvailable)
        limits = self._limits() if limited else ReadLimits()
        known = limits != ReadLimits()
        if known:
            end = live.admit(positions, end, limits)
            if self._pace is not None:
                self._pace.begin(live.waiting(positions, end, limits.messages), steady_seconds())
        allowance = self._options.backlog_bytes if limited and not known else 0
        cuts: Cuts = {}
        least, most, sizes = self._options.min_partitions, self._options.max_partitions, self._options.sizes
        sized = sizes != TaskSizes()
        if allowance or (least > len(end) and not sized):
            end, cuts = live.bound(positions, end, 0 if sized else least, allowance)
        if sized:
            cuts, least = live.slices(positions, end, sizes, least, most, known=known), 0
        self._planned = steady_seconds()
        self._end = end
        return to_json(end, (least, most), cuts, self._subscription)

    def _look_for_another(self, start: Mapping[str, Any]) -> None:
        """Say once that the query went by another subscription until now, which nothing moves any more."""
        before = start.get("s", self._subscription)
        if before not in (self._subscription, self._other):
            self._other = before
            log.warning(
                "the checkpoint is of the subscription %r, and the query goes on with %r: %r stays where it is, and "
                "keeps all that comes from being trimmed; delete it, or give its name again",
                before,
                self._subscription,
                before,
            )

    def _waits(self, live: TopicTracker, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition]) -> bool:
        """Return whether there are too few messages for a micro-batch yet; not when no more can be expected."""
        least = self._options.least_messages
        if not least or self._target is not None or steady_seconds() - self._planned > self._options.trigger_delay:
            return False
        return live.waiting(start, end, least) < least

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return, for Spark's progress, how far the topics go, and how far behind the micro-batch that was planned last
        is."""
        live = self._live()
        found = to_json(live.latest())
        if self._end is not None and (lags := live.lags(self._end)):
            found["lag"] = lag_json(lags, SystemClock().now_ms())
        return found

    def prepareForTriggerAvailableNow(self) -> None:
        """Note what is there now: this run reads that, up to endingOffsets."""
        self._target = self._live().bound_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan the tasks: a function of the arguments only, so that a repeated micro-batch has the tasks it had."""
        least, most = tasks_of(end, (self._options.min_partitions, self._options.max_partitions))
        tasks = plan(from_json(start), from_json(end), least=least, most=most, cuts=cuts_of(end))
        return [ReadTask(task) for task in tasks] or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield one task's record batches."""
        note_source_read()
        assert isinstance(partition, ReadTask), f"not planned by this reader: {partition}"
        return read_task(self._options, partition.ranges)

    def commit(self, end: dict[str, Any]) -> None:
        """Move the subscriptions: everything before ``end`` is processed, and the broker may trim it."""
        self._live().move_to(from_json(end))

    def stop(self) -> None:
        """Close the connections. Spark does not always call it; the broker notices the end of the process."""
        if self._tracker is not None:
            self._tracker.close()
            self._tracker = None
