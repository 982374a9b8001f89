"""Sources, steps, sinks and dead letters as DataFrames: the same description for the stream and for one micro-batch.

`Frames` is built from a function that gives a source's messages: as a stream (to see what keeps state, and to run what
does), or as the range of one micro-batch. Names of sources and steps are temporary views for SQL. ``keep`` is called
with every frame that is needed more than once, such as those whose rows are checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration import functions
from magnetar.pipelines.declaration.model import (
    Action,
    Expectation,
    Pipeline,
    PythonStep,
    Sink,
    Step,
    TableSource,
    TopicSink,
    TopicSource,
)
from magnetar.pipelines.declaration.secrets import resolve, resolved_options
from magnetar.pipelines.execution import expressions
from magnetar.spark.options.source_options import for_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[[TopicSource], "DataFrame"]
_REPLACED: Final = frozenset(
    {"topic", "topics", "topicsPattern", "assign", "startingOffsets", "startingTime", "endingOffsets", "endingTime"}
)
"""Options of a source that a given range replaces."""


_ENDS: Final = ("\n\n", ";\n", "\nJVM stacktrace", "\n=== Streaming Query")


class Check(NamedTuple):
    """A place where rows are judged."""

    name: str
    frame: DataFrame
    """All rows, with their outcome."""
    dead: DataFrame | None
    whole: bool
    """Whether the rows are messages of a source."""


class StepError(InvalidValueError):
    """Spark does not understand a step, expectation or sink; the text names its place in the file."""


def short(error: BaseException) -> str:
    """Return Spark's error text without plan and trace."""
    text = str(error).strip()
    for end in _ENDS:
        text = text.split(end, 1)[0]
    return text


def stream(spark: SparkSession, pipeline: Pipeline, source: TopicSource) -> DataFrame:
    """Return a source's messages as a stream."""
    reader = spark.readStream.format("pulsar").options(**source_options(pipeline, source))
    return reader.option("subscription", source.subscription).load()


def source_options(pipeline: Pipeline, source: TopicSource) -> dict[str, str]:
    """Return a source's options of format("pulsar"), with secrets resolved."""
    given = {**pipeline.broker(), **source.options, "metadata": expressions.metadata_of(source)}
    if source.value == "schema":
        given["onDecodeError"] = "column"
    return resolved_options(given)


def read_range(
    spark: SparkSession,
    pipeline: Pipeline,
    source: TopicSource,
    start: Mapping[str, ReadPosition],
    end: Mapping[str, ReadPosition],
    *,
    lossy: bool = False,
) -> DataFrame | None:
    """Return the messages between two offsets; None if there can be none."""
    ranges = {topic: (start.get(topic, START), place) for topic, place in end.items()}
    ranges = {topic: one for topic, one in ranges.items() if one[0] < one[1]}
    if not ranges:
        return None
    given = for_batch(source_options(pipeline, source))
    options = {name: text for name, text in given.items() if name not in _REPLACED}
    options |= {
        "topics": ",".join(ranges),
        "startingOffsets": json.dumps({topic: str(one[0]) for topic, one in ranges.items()}),
        "endingOffsets": json.dumps({topic: str(one[1]) for topic, one in ranges.items()}),
    }
    if lossy:
        options["failOnDataLoss"] = "false"
    return spark.read.format("pulsar").options(**options).load()


class Frames:
    """All frames of a pipeline; ``views``, ``checks`` and ``sinks`` by name once built."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        read: Read,
        *,
        keep: Callable[[DataFrame], DataFrame] = lambda frame: frame,
        given: Mapping[str, DataFrame] | None = None,
    ) -> None:
        """Build all frames; ``given`` are steps whose rows are known already."""
        self._spark = spark
        self._pipeline = pipeline
        self._keep = keep
        self._given = given or {}
        self.views: dict[str, DataFrame] = {}
        self.checks: dict[str, Check] = {}
        self.sinks: dict[str, DataFrame] = {}
        for source in pipeline.sources:
            frame = self._table(source) if isinstance(source, TableSource) else self._source(source, read(source))
            self._view(source.name, frame)
        for step in pipeline.steps:
            self._view(step.name, self._step(step))
        for sink in pipeline.sinks:
            self.sinks[sink.name] = self._sink(sink)

    @property
    def dead(self) -> DataFrame | None:
        """All dead letters, of every place that has some."""
        frames = [one.dead for one in self.checks.values() if one.dead is not None]
        whole = frames[0] if frames else None
        for frame in frames[1:]:
            assert whole is not None, "there is a first one"
            whole = whole.union(frame)
        return whole

    def _view(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self.views[name] = frame

    def _table(self, source: TableSource) -> DataFrame:
        reader = self._spark.read.format(source.format)
        reader = reader.options(**{name: resolve(text) for name, text in source.options.items()})
        if source.fields:
            reader = reader.schema(source.fields)
        return self._understood(
            source.where,
            f"sources.{source.name}",
            lambda: reader.load(None if source.path is None else resolve(source.path)),
        )

    def _source(self, source: TopicSource, frame: DataFrame) -> DataFrame:
        bad = Action.DEAD_LETTER if self._pipeline.dead_letter is not None else Action.FAIL
        where = f"sources.{source.name}"
        whole = self._understood(source.where, where, lambda: expressions.decoded(expressions.hashed(frame), source))
        if source.watermark is not None and whole.isStreaming:
            watermark = source.watermark
            whole = self._understood(
                source.where, f"{where}.watermark", lambda: whole.withWatermark(watermark.column, watermark.delay)
            )
        at_source = source.value == "schema"
        checked = self._checked(whole, source.name, source.expectations, where, decode=bad, decoded_at_source=at_source)
        return expressions.good_rows(checked, source.name)

    def _step(self, step: Step) -> DataFrame:
        if step.name in self._given:
            frame = self._given[step.name]
        else:
            frame = self._understood(step.where, f"steps.{step.name}", lambda: self._made(step))
        mark = None
        if expressions.MARK in frame.columns:
            mark = Action.DEAD_LETTER if self._pipeline.dead_letter is not None else Action.FAIL
        if mark is None and not step.expectations:
            return frame
        return expressions.good_rows(
            self._checked(frame, step.name, step.expectations, f"steps.{step.name}", mark=mark), step.name
        )

    def _made(self, step: Step) -> DataFrame:
        if isinstance(step, PythonStep):
            result: Any = functions.called(step.function, [self.views[name] for name in step.inputs], step.parameters)
            if not hasattr(result, "createOrReplaceTempView"):
                raise InvalidValueError(f"{step.function} gives {type(result).__name__} and no DataFrame")
            return result  # type: ignore[no-any-return]  # just looked at
        return self._spark.sql(step.sql)

    def _sink(self, sink: Sink) -> DataFrame:
        frame, where = self.views[sink.source], f"sinks.{sink.name}"
        if sink.expectations:
            frame = expressions.good_rows(self._checked(frame, sink.name, sink.expectations, where), sink.name)
        if isinstance(sink, TopicSink):
            return self._understood(sink.where, where, lambda: expressions.sink_rows(frame, sink))
        return frame

    def _checked(
        self,
        frame: DataFrame,
        name: str,
        expectations: tuple[Expectation, ...],
        where: str,
        *,
        decode: Action | None = None,
        mark: Action | None = None,
        decoded_at_source: bool = False,
    ) -> DataFrame:
        for one in expectations:
            # One by one, so that an error names its line.
            self._understood(
                one.where,
                f"{where}.expect.{one.name}",
                lambda one=one: frame.where(one.condition),  # type: ignore[misc]  # mypy cannot see the default
            )
        outcome = expressions.outcome_of(expectations, decode=decode, mark=mark)
        checked = self._keep(frame.withColumn(expressions.OUTCOME + name, outcome))
        whole = decode is not None
        dead = None
        if Action.DEAD_LETTER in {decode, mark, *(one.action for one in expectations)}:
            dead = expressions.dead_letters(
                checked, name, expectations, self._pipeline.name, whole=whole, decoded_at_source=decoded_at_source
            )
        self.checks[name] = Check(name, checked, dead, whole)
        return checked

    def _understood(self, place: str, path: str, make: Callable[[], DataFrame]) -> DataFrame:
        from pyspark.errors import PySparkException

        try:
            return make()
        except StepError:
            raise
        except (PySparkException, InvalidValueError) as error:
            raise StepError(f"{place}: {path}: {short(error)}") from None
