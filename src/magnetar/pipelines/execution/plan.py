"""Spark's analysis of a pipeline: which steps keep state, which rows pass unchanged, and the graph as text.

A step without state (select, filter, a join with a table that is there) gives the same whether its rows come as a
stream or as the range of one micro-batch. A step with state (aggregation, join of two streams, deduplication) needs the
stream. At most one frame can come from the stream into a micro-batch, so the last step with state must be one that
everything else with state goes through (`Analysis.streamed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.model import (
    Action,
    Pipeline,
    PlainSink,
    PythonStep,
    Sink,
    SqlStep,
    TableSink,
    TopicSink,
    TopicSource,
    Trigger,
    target_of,
)
from magnetar.pipelines.execution.expressions import OUTCOME
from magnetar.pipelines.execution.frames import Frames, StepError, short, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATE: Final = frozenset(
    {
        *("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Window", "GlobalLimit", "LocalLimit"),
        *("FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState", "TransformWithState"),
        *("TransformWithStateInPySpark", "TransformWithStateInPandas", "Except", "Intersect", "Sort"),
    }
)
_PASSING: Final = frozenset({"Project", "SubqueryAlias", "View", "Filter", "EventTimeWatermark"})
"""One row in, one row out; of filters only our own."""


class Analysis(NamedTuple):
    """A pipeline as Spark understands it."""

    frames: Frames
    """The frames over streams."""
    streams: Mapping[str, DataFrame]
    """The stream of each topic source, as it is read."""
    streamed: str | None
    """The step whose rows come from the stream; None if every micro-batch is computed from its range alone."""
    clock: DataFrame
    """The frame that the query runs over."""
    order: tuple[str, ...]
    """Sources in the order of Spark's offset log."""
    chains: Mapping[str, tuple[str, ...] | None]
    """The checks of each sink's rows, see ``of`` in `manifest`."""


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield the plan's nodes, parents first."""
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def state_of(frame: DataFrame) -> list[str]:
    """Return what keeps state between micro-batches when a frame is computed."""
    found = []
    for node in _nodes(_analyzed(frame)):
        if not node.isStreaming():
            continue
        name = node.nodeName()
        children = node.children()
        both = name == "Join" and all(children.apply(index).isStreaming() for index in range(children.size()))
        if name in _STATE or both:
            found.append("join of two streams" if both else name)
    return found


def _streams(frame: DataFrame) -> list[str]:
    """Return the subscriptions of the streams that a frame reads, in Spark's order."""
    return [
        node.extraOptions().get("subscription")
        for node in _nodes(_analyzed(frame))
        if node.nodeName().startswith("StreamingRelation")
    ]


def _chain(frame: DataFrame) -> tuple[str, ...] | None:
    """Return the checks that every row of the frame went through; None if rows were selected or made on the way."""
    found = []
    for node in _nodes(_analyzed(frame)):
        name = node.nodeName()
        if node.children().size() == 0:
            continue
        if name not in _PASSING:
            return None
        if name == "Filter":
            condition = node.condition().toString()
            if not condition.startswith(f"isnull({OUTCOME}"):
                return None
            found.append(condition.removeprefix(f"isnull({OUTCOME}").rpartition("#")[0])
    return tuple(reversed(found))


def analyse(spark: SparkSession, pipeline: Pipeline) -> Analysis:
    """Analyse a pipeline. Raises StepError for what Spark does not understand, and for state in two places."""
    streams = {source.name: stream(spark, pipeline, source) for source in pipeline.topic_sources}

    def read(source: TopicSource) -> DataFrame:
        return streams[source.name]

    frames = Frames(spark, pipeline, read)
    _check_supported(spark, pipeline, frames)
    chains = {name: _chain(frame) for name, frame in frames.sinks.items()}
    with_state = [step for step in pipeline.steps if state_of(frames.views[step.name])]
    if not with_state:
        return Analysis(frames, streams, None, _ticks(streams), tuple(streams), chains)
    for step in with_state:
        empty = spark.createDataFrame([], frames.views[step.name].schema)
        rest = Frames(spark, pipeline, read, given={step.name: empty})
        outputs = {**rest.sinks, **{name: check.frame for name, check in rest.checks.items()}}
        if not any(state_of(frame) for frame in outputs.values()):
            clock = _rows_of(frames, step.name)
            return Analysis(frames, streams, step.name, clock, _order(pipeline, clock, step.where), chains)
    names = " and ".join(step.name for step in with_state)
    raise StepError(
        f"{with_state[-1].where}: steps {names} keep state, and not all of that goes through the last one: "
        "sinks and expectations after an earlier one need a pipeline of their own"
    )


def _rows_of(frames: Frames, name: str) -> DataFrame:
    """Return a step's rows before they are checked."""
    return frames.checks[name].frame.drop(OUTCOME + name) if name in frames.checks else frames.views[name]


def _ticks(streams: Mapping[str, DataFrame]) -> DataFrame:
    """Join all streams; only their offsets are used, since a micro-batch reads its range itself."""
    from pyspark.sql import functions as f

    clock: DataFrame | None = None
    for frame in streams.values():
        one = frame.select(f.lit(1).alias("tick"))
        clock = one if clock is None else clock.union(one)
    assert clock is not None, "a pipeline has a topic"
    return clock


def _order(pipeline: Pipeline, clock: DataFrame, where: str) -> tuple[str, ...]:
    by_subscription = {source.subscription: source.name for source in pipeline.topic_sources}
    found = [by_subscription[one] for one in _streams(clock)]
    for name in set(found):
        if found.count(name) > 1:
            raise StepError(
                f"{where}: the rows that keep state read source {name} {found.count(name)} times, which Spark follows "
                "as different streams; declare it twice under two names"
            )
    if missing := sorted(set(by_subscription.values()) - set(found)):
        raise StepError(
            f"{where}: source {missing[0]} has no part in the rows that keep state, so nothing says when it goes on; "
            "put it into a pipeline of its own"
        )
    return tuple(found)


def _check_supported(spark: SparkSession, pipeline: Pipeline, frames: Frames) -> None:
    """Apply Spark's own rules for streams also to what is computed per micro-batch."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # publishes no types
    from pyspark.errors import PySparkException

    jvm: Any = spark._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, pipeline.output_mode.title())()
    for sink in pipeline.sinks:
        try:
            jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(
                _analyzed(frames.sinks[sink.name]), mode
            )
        except PySparkException as error:
            raise StepError(f"{sink.where}: sinks.{sink.name}: {short(error)}") from None
        except Py4JJavaError as error:
            raise StepError(f"{sink.where}: sinks.{sink.name}: {error.java_exception.getMessage()}") from None


def guarantee(sink: Sink) -> str:
    """Return what a sink promises, and why."""
    if isinstance(sink, TopicSink):
        return (
            "effectively once: each micro-batch is stored first and sent under the query's id and its number, and the "
            "broker (deduplication must be on) drops what it has"
        )
    if isinstance(sink, TableSink):
        return "exactly once: the table's commit carries the query's id and the micro-batch, and a second is refused"
    assert isinstance(sink, PlainSink), "there is no other"
    return (
        "at least once: a micro-batch that is repeated is shown again" if sink.format == "console" else "keeps nothing"
    )


def _schema(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)


def _expect(lines: list[str], one: Any) -> None:
    for expectation in one.expectations:
        lines.append(f"    expects {expectation.name}: {expectation.condition}, else {expectation.action.value}")


def text(pipeline: Pipeline, analysis: Analysis) -> list[str]:
    """Return the graph as lines of text."""
    frames, lines = analysis.frames, [f"pipeline {pipeline.name} ({pipeline.file})"]
    trigger = pipeline.trigger.value + (f" {pipeline.interval:g} s" if pipeline.trigger is Trigger.INTERVAL else "")
    lines += [f"  broker {pipeline.service_url}, trigger {trigger}, checkpoint {pipeline.checkpoint}"]
    if analysis.streamed is not None:
        state = ", ".join(dict.fromkeys(state_of(frames.views[analysis.streamed])))
        lines.append(
            f"  step {analysis.streamed} keeps state ({state}), output mode {pipeline.output_mode}: the stream "
            "computes it, and everything after it is computed per micro-batch"
        )
    else:
        lines.append("  no step keeps state: each micro-batch is computed from its range of the topics alone")
    for source in pipeline.sources:
        if isinstance(source, TopicSource):
            what = next(
                source.options[one] for one in ("topic", "topics", "topicsPattern", "assign") if one in source.options
            )
            lines.append(f"source {source.name}: {what}, subscription {source.subscription}, value as {source.value}")
            bad = "to the dead-letter topic" if pipeline.dead_letter else "fail the micro-batch"
            if source.value != "binary":
                lines.append(f"    values that cannot be decoded {bad}")
            _expect(lines, source)
        else:
            lines.append(f"source {source.name}: table, {source.format} {source.path or ''}, read in each micro-batch")
        lines.append(f"    {_schema(frames.views[source.name])}")
    for step in pipeline.steps:
        if isinstance(step, SqlStep):
            lines.append(f"step {step.name}: {' '.join(step.sql.split())}")
        elif isinstance(step, PythonStep):
            lines.append(f"step {step.name}: {step.function}({', '.join(step.inputs)})")
        _expect(lines, step)
        lines.append(f"    {_schema(frames.views[step.name])}")
    for sink in pipeline.sinks:
        lines.append(f"sink {sink.name}: {sink.source} -> {target_of(sink)}")
        _expect(lines, sink)
        lines.append(f"    {_schema(frames.sinks[sink.name])}")
        lines.append(f"    {guarantee(sink)}")
        chain = analysis.chains[sink.name]
        if chain is not None:
            lines.append("    every row that passes its checks is written, which verify counts")
    if pipeline.dead_letter is not None:
        lines.append(f"dead letters: {pipeline.dead_letter}, effectively once")
    elif any(one.action is Action.DEAD_LETTER for source in pipeline.topic_sources for one in source.expectations):
        raise InvalidValueError("there is no dead-letter topic")
    return lines
