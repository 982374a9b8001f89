"""The streaming source.

Offsets come from the broker's last message of each partition; ranges between two offsets are read by the tasks, as in
batch mode. A durable subscription per partition anchors the first offset: Spark asks for the initial offset again when
batch 0 is repeated, and an answer that moves with the topic would lose what lies between (PIPELINES 1.2). It also keeps
what is not processed from being trimmed, and shows the backlog to the broker's tools; Spark commits one batch late, so
that backlog is never less than the last batch.

The option ``subscription`` is therefore demanded: it is the durable name of where this query began. With a new
checkpoint and an old subscription the query begins where the subscription stands; ``startingOffsets`` counts when the
subscription is new.

Spark asks for the latest offset up to a hundred times a second, so answers are kept for a moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from magnetar.client.anchor import Anchor
from magnetar.client.lookup import Lookup
from magnetar.client.place import START, Place
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import steady_seconds
from magnetar.spark.offsets import from_json, to_json
from magnetar.spark.options import SourceOptions
from magnetar.spark.planner import plan
from magnetar.spark.reader import ReadTask, check_names, open_lookup, read_task, topic_partitions

_FRESH: Final = 0.02
_DISCOVERY_INTERVAL: Final = 10.0


class _Anchors:
    """The driver's side: one subscription per partition. Lives in one process; never travels."""

    def __init__(self, options: SourceOptions, subscription: str) -> None:
        self._options = options
        self._subscription = subscription
        self._lookup: Lookup = open_lookup(options)
        self._anchors: dict[str, Anchor] = {}
        self._discovered = float("-inf")
        self._asked = float("-inf")
        self._last: dict[str, Place] = {}

    def initial(self) -> dict[str, Place]:
        starting = self._options.starting
        word = starting.word if starting is not None else "latest"
        places = starting.places if starting is not None else {}
        fallback = None if word == "latest" else START
        names = self._discover()
        check_names(starting, names, "startingOffsets")
        return {name: self._anchor(name).hold(places.get(name, fallback)) for name in names}

    def latest(self) -> dict[str, Place]:
        """New topics and partitions included."""
        now = steady_seconds()
        if now - self._asked > _FRESH:
            if now - self._discovered > _DISCOVERY_INTERVAL:
                for name in self._discover():
                    if name not in self._anchors:
                        self._anchor(name).hold(START)
            self._last = {name: anchor.last() for name, anchor in self._anchors.items()}
            self._asked = steady_seconds()
        return self._last

    def move_to(self, places: Mapping[str, Place]) -> None:
        for name, place in places.items():
            self._anchor(name).move_to(place)

    def close(self) -> None:
        for anchor in self._anchors.values():
            anchor.close()
        self._lookup.close()

    def _discover(self) -> list[str]:
        self._discovered = steady_seconds()
        return topic_partitions(self._lookup, self._options.topics, create=True)

    def _anchor(self, name: str) -> Anchor:
        anchor = self._anchors.get(name)
        if anchor is None:
            anchor = self._anchors[name] = Anchor(self._lookup, name, self._subscription)
        return anchor


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """For ``spark.readStream``."""

    def __init__(self, options: SourceOptions) -> None:
        if options.subscription is None:
            raise InvalidValueError(
                "a stream needs the option 'subscription': a name, unique to this query, under which the broker "
                "remembers where it began and keeps what it has not processed"
            )
        if options.ending is not None:
            raise InvalidValueError("option 'endingOffsets' has no meaning for a stream")
        self._options = options
        self._subscription = options.subscription
        self._anchors: _Anchors | None = None
        self._target: dict[str, Place] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Spark sends the reader to the workers, which only read: sockets stay here.
        return {**self.__dict__, "_anchors": None}

    def _live(self) -> _Anchors:
        if self._anchors is None:
            self._anchors = _Anchors(self._options, self._subscription)
        return self._anchors

    def initialOffset(self) -> dict[str, Any]:
        """The same until the first batch is committed."""
        return to_json(self._live().initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """No admission control yet."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Never behind ``start``; with Trigger.AvailableNow never beyond what there was at the beginning."""
        places = from_json(start)
        for name, last in (self._target if self._target is not None else self._live().latest()).items():
            places[name] = max(last, places.get(name, START))
        return to_json(places)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For Spark's progress: its lag is this minus the batch's end."""
        return to_json(self._live().latest())

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is what this run reads."""
        live = self._live()
        live.initial()
        self._target = dict(live.latest())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A function of its arguments and the options only."""
        options = self._options
        tasks = plan(from_json(start), from_json(end), least=options.min_partitions, most=options.max_partitions)
        return [ReadTask(task) for task in tasks] or [ReadTask(())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """One task's record batches."""
        assert isinstance(partition, ReadTask), f"planned by somebody else: {partition}"
        return read_task(self._options, partition.ranges)

    def commit(self, end: dict[str, Any]) -> None:
        """Everything before ``end`` is processed: the subscription moves, the broker may trim."""
        self._live().move_to(from_json(end))

    def stop(self) -> None:
        """Spark does not always call it; the broker notices the end of the process."""
        if self._anchors is not None:
            self._anchors.close()
            self._anchors = None
