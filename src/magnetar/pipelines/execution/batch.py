"""One micro-batch, which can be repeated from any point.

1. If its manifest is there, everything is done.
2. Its ranges are taken from Spark's offset log, its rows are read by range, judged and computed, and every output is
   stored as Parquet (``staged/<batch>``). Counts and prints go beside them, in one file that is written last: without
   it the step begins again, with it the step is done. An expectation with the action ``fail`` ends here: nothing has
   been sent.
3. Every output is written from its files (`outputs`), which may be repeated without effect.
4. The manifest is written, and the files are removed.

Spark notes the micro-batch as finished afterwards, and repeats it if it could not.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.pipelines.declaration.model import DEAD_LETTERS, Action, Pipeline, Sink, TopicSink, TopicSource, target_of
from magnetar.pipelines.execution import expressions, outputs
from magnetar.pipelines.execution.frames import Check, Frames, read_range
from magnetar.pipelines.execution.plan import Analysis
from magnetar.pipelines.state.checkpoint import STAGED, PipelineCheckpoint, Places
from magnetar.pipelines.state.manifest import BY_NAMES, CheckPart, Manifest, OutputPart, SourcePart, print_text
from magnetar.runtime.clock import SystemClock
from magnetar.spark.durable_files import make_directory, sync_tree, write_whole
from magnetar.spark.sink.foreach_batch import SPLIT, WHOLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ExpectationError(MagnetarError):
    """A row does not meet an expectation whose action is ``fail``."""


class BatchRun:
    """The function of ``foreachBatch``; ``on_manifest`` is called with every manifest."""

    def __init__(
        self,
        pipeline: Pipeline,
        checkpoint: PipelineCheckpoint,
        analysis: Analysis,
        on_manifest: Callable[[Manifest], None],
    ) -> None:
        self._pipeline = pipeline
        self._checkpoint = checkpoint
        self._analysis = analysis
        self._on_manifest = on_manifest
        self._schemas = {name: frame.schema for name, frame in analysis.streams.items()}
        self._starts = checkpoint.starts()
        self.busy = threading.Lock()
        """Held while a micro-batch is under way."""
        self.failure: BaseException | None = None
        """The error that ends the query, before Spark has wrapped it."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        with self.busy:
            try:
                self._run(frame, batch)
            except BaseException as error:
                self.failure = error
                raise

    def _run(self, frame: DataFrame, batch: int) -> None:
        query = self._checkpoint.query_id()
        if query is None:
            raise InvalidValueError(f"{self._checkpoint.directory}/metadata is missing: Spark's checkpoint was changed")
        ranges = self._ranges(batch)
        done = self._checkpoint.manifest(batch)
        if done is not None:
            self._check_same(done, ranges)
            self._keep_state(frame)
            self._on_manifest(done)
            return
        spark = frame.sparkSession
        for key, value in SPLIT.items():
            spark.conf.set(key, value)
        began = SystemClock().now_ms()
        staged = self._checkpoint.staged(batch)
        if (staged / STAGED).exists():
            self._keep_state(frame)
        else:
            self._checkpoint.hold(batch)
            shutil.rmtree(self._checkpoint.directory / "staged", ignore_errors=True)
            make_directory(staged)
            self._stage(spark, frame, batch, ranges)
        given = self._checkpoint.staged_results(batch)
        computed = SystemClock().now_ms()
        self._send(spark, query, batch, given["outputs"])
        sources = {
            name: SourcePart(
                {topic: str(place) for topic, place in sorted(start.items())},
                {topic: str(place) for topic, place in sorted(end.items())},
                given["rows"][name],
                given["prints"][name],
            )
            for name, (start, end) in ranges.items()
        }
        ended = SystemClock().now_ms()
        manifest = self._checkpoint.write(
            Manifest(
                self._pipeline.name,
                query,
                batch,
                sources,
                {name: CheckPart(**part) for name, part in given["checks"].items()},
                {name: OutputPart(**part) for name, part in given["outputs"].items()},
                {"began_ms": began, "computed_ms": computed, "ended_ms": ended},
                "",
            )
        )
        self._checkpoint.remove_staged()
        self._on_manifest(manifest)

    def _keep_state(self, frame: DataFrame) -> None:
        """Compute a repeated micro-batch for Spark's state and watermark only; its results are stored already."""
        if self._analysis.streamed is not None:
            frame.write.format("noop").mode("append").save()

    def _ranges(self, batch: int) -> dict[str, tuple[Places, Places]]:
        """Return start and end of each source; both are in Spark's log, except where the first micro-batch began."""
        order = self._analysis.order
        ends = self._checkpoint.ends(batch)
        before = self._checkpoint.ends(batch - 1) if batch else [self._starts.get(name) for name in order]
        if not len(ends) == len(before) == len(order):
            raise InvalidValueError(
                f"the checkpoint has {len(ends)} sources and the pipeline {len(order)}: sources cannot be added or "
                "removed; use a new checkpoint"
            )
        found = {}
        for name, start, end in zip(order, before, ends, strict=True):
            first = start if start is not None else self._starts.get(name, {})
            found[name] = first, dict(end if end is not None else first)
        self._check_order(batch, found)
        return found

    def _check_order(self, batch: int, ranges: dict[str, tuple[Places, Places]]) -> None:
        """Spark's log has offsets by the order of sources, without names: notice if that is not what it was."""
        before = self._checkpoint.manifest(batch - 1) if batch else None
        for name, (start, end) in ranges.items():
            if before is not None:
                part = before.sources.get(name)
                same = part is not None and part.end == {topic: str(place) for topic, place in start.items()}
            else:
                same = not start or not end or not start.keys().isdisjoint(end)
            if not same:
                raise InvalidValueError(
                    f"source {name}: what Spark's checkpoint has for it at micro-batch {batch} is not where it was: "
                    "the file has its sources (or a step that keeps state reads them) in another order now. Bring the "
                    "order back, or use a new checkpoint"
                )

    def _check_same(self, done: Manifest, ranges: dict[str, tuple[Places, Places]]) -> None:
        for name, (_, end) in ranges.items():
            written = done.sources.get(name)
            if written is None or written.end != {topic: str(place) for topic, place in end.items()}:
                raise InvalidValueError(
                    f"manifest {done.batch} has another range of {name} than Spark's checkpoint: one of them was "
                    "replaced; restore both, or start with a new checkpoint"
                )

    # What comes, and what becomes of it

    def _stage(
        self, spark: SparkSession, frame: DataFrame, batch: int, ranges: dict[str, tuple[Places, Places]]
    ) -> None:
        kept: list[DataFrame] = []

        def keep(one: DataFrame) -> DataFrame:
            kept.append(one.persist())
            return kept[-1]

        def read(source: TopicSource) -> DataFrame:
            start, end = ranges[source.name]
            found = read_range(spark, self._pipeline, source, start, end)
            return spark.createDataFrame([], self._schemas[source.name]) if found is None else found

        streamed = self._analysis.streamed
        try:
            given = {streamed: keep(frame)} if streamed is not None else {}
            frames = Frames(spark, self._pipeline, read, keep=keep, given=given)
            self._write_staged(frames, batch, ranges)
        finally:
            for one in kept:
                one.unpersist()

    def _write_staged(self, frames: Frames, batch: int, ranges: dict[str, tuple[Places, Places]]) -> None:
        counted: dict[str, dict[str, int]] = {}
        prints: dict[str, dict[str, str]] = {}
        checks = {}
        for check in frames.checks.values():
            checks[check.name], by_topic = _judged(check)
            if check.whole:
                topics = ranges[check.name][1]
                counted[check.name] = {topic: by_topic.get(topic, (0, 0))[0] for topic in sorted(topics)}
                prints[check.name] = {topic: print_text(by_topic.get(topic, (0, 0))[1]) for topic in sorted(topics)}
        self._refuse(frames, checks)
        parts = {}
        for sink in self._pipeline.sinks:
            parts[sink.name] = self._stored(frames.sinks[sink.name], sink.name, batch, _kind(sink), target_of(sink))
            parts[sink.name]["of"] = self._analysis.chains[sink.name]
        dead = frames.dead
        if self._pipeline.dead_letter is not None:
            if dead is not None and sum(one["dead"] for one in checks.values()):
                parts[DEAD_LETTERS] = self._stored(dead, DEAD_LETTERS, batch, "topic", self._pipeline.dead_letter)
            else:
                parts[DEAD_LETTERS] = _part("topic", self._pipeline.dead_letter, 0, 0)
        # Spark wrote the files, and syncs none.
        sync_tree(self._checkpoint.staged(batch))
        text = json.dumps({"rows": counted, "prints": prints, "checks": checks, "outputs": parts})
        write_whole(self._checkpoint.staged(batch) / STAGED, text)

    def _refuse(self, frames: Frames, checks: dict[str, dict[str, Any]]) -> None:
        """Raise ExpectationError if an expectation with the action ``fail`` is not met."""
        from pyspark.sql import functions as f

        for name, part in checks.items():
            if not part.pop("failed"):
                continue
            outcome = f.col(expressions.OUTCOME + name)
            bad = frames.checks[name].frame.where(outcome.startswith(f"{Action.FAIL.value}:"))
            first = bad.drop(expressions.HASH, expressions.RAW).first()
            assert first is not None, "it was counted"
            cause = first[expressions.OUTCOME + name].partition(":")[2]
            shown = {key: value for key, value in first.asDict().items() if not key.startswith("__")}
            at = (
                ":".join(str(first[key]) for key in expressions.POSITION)
                if set(expressions.POSITION) <= set(bad.columns)
                else ""
            )
            raise ExpectationError(
                f"{bad.count()} rows at {name} do not meet {cause!r}, whose action is fail; the first one is {shown}"
                + (f" at {at}" if at else "")
                + (
                    f": {first[expressions.ERROR]}"
                    if expressions.ERROR in bad.columns and first[expressions.ERROR]
                    else ""
                )
                + ". Nothing of this micro-batch was written"
            )

    def _stored(self, frame: DataFrame, name: str, batch: int, kind: str, target: str) -> dict[str, Any]:
        """Write one output to files, and return what they hold."""
        from pyspark.sql import functions as f

        path = str(self._checkpoint.staged(batch) / name)
        frame.write.mode("overwrite").parquet(path)
        stored = frame.sparkSession.read.options(**WHOLE).schema(frame.schema).parquet(path)
        if kind == "topic":
            for column in ("__key", "value"):
                if column not in stored.columns:
                    stored = stored.withColumn(column, f.lit(None).cast("binary"))
            number = expressions.message_print()
        else:
            number = expressions.row_print(stored.columns)
        found = stored.select(number.alias("__number")).agg(f.count("*"), *expressions.sums(f.col("__number"))).first()
        assert found is not None, "an aggregate has a row"
        return _part(kind, target, found[0], expressions.sum_of(found[1], found[2]))

    # Where it goes

    def _send(self, spark: SparkSession, query: str, batch: int, parts: dict[str, dict[str, Any]]) -> None:
        targets: list[tuple[str, Callable[[DataFrame], None]]] = [
            (sink.name, partial(self._write, sink, query, batch)) for sink in self._pipeline.sinks
        ]
        if self._pipeline.dead_letter is not None:
            targets.append((DEAD_LETTERS, partial(self._bury, query, batch)))
        for name, write in targets:
            if parts[name]["rows"]:
                write(spark.read.options(**WHOLE).parquet(str(self._checkpoint.staged(batch) / name)))

    def _write(self, sink: Sink, query: str, batch: int, stored: DataFrame) -> None:
        outputs.write(self._pipeline, sink, stored, query, batch)

    def _bury(self, query: str, batch: int, stored: DataFrame) -> None:
        assert self._pipeline.dead_letter is not None, "there is a dead letter"
        app = outputs.application(query, DEAD_LETTERS)
        # What was read in chunks may have to be.
        options = {"pulsar.producer.chunkingEnabled": "true"}
        outputs.to_topic(self._pipeline, self._pipeline.dead_letter, stored, app, batch, options)


def _kind(sink: Sink) -> str:
    return "topic" if isinstance(sink, TopicSink) else sink.format


def _part(kind: str, target: str, count: int, total: int) -> dict[str, Any]:
    by = None if kind == "topic" else BY_NAMES
    return {"kind": kind, "target": target, "rows": count, "print": print_text(total), "of": None, "by": by}


def _judged(check: Check) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """Count rows by outcome, and for a source rows and sum of prints by topic-partition."""
    from pyspark.sql import functions as f

    outcome = expressions.OUTCOME + check.name
    keys = [outcome, "__topic"] if check.whole else [outcome]
    sums = expressions.sums(f.col(expressions.HASH)) if check.whole else []
    counts = {"rows": 0, "dead": 0, "dropped": 0, "failed": 0}
    causes: dict[str, int] = {}
    by_topic: dict[str, tuple[int, int]] = {}
    field = {Action.DEAD_LETTER.value: "dead", Action.DROP.value: "dropped", Action.FAIL.value: "failed"}
    for row in check.frame.groupBy(*keys).agg(f.count("*").alias("__rows"), *sums).collect():
        counts["rows"] += row["__rows"]
        if row[outcome] is not None:
            action, _, cause = row[outcome].partition(":")
            counts[field[action]] += row["__rows"]
            causes[cause] = causes.get(cause, 0) + row["__rows"]
        if check.whole:
            before = by_topic.get(row["__topic"], (0, 0))
            total = expressions.sum_of(row["__high"], row["__low"])
            by_topic[row["__topic"]] = before[0] + row["__rows"], before[1] + total
    return {**counts, "causes": causes}, by_topic
