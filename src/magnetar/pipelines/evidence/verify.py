"""Collects the evidence of a pipeline and checks it: its manifests, its topics, its tables.

Sources are read again with Spark, by the code that read them; output topics are read with the client, which shows the
producer and number of every message; tables are read by file (`tables`). What could not be read is reported: only what
was read is proven.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.client.bulk.positions import last_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.columnar.entries.column_builder import ColumnBuilder
from magnetar.columnar.single_entries.opener import CryptoFailureAction
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.model import DEAD_LETTERS, Pipeline, PlainSink, TableSink
from magnetar.pipelines.evidence.discrepancy import Discrepancy
from magnetar.pipelines.evidence.manifest_checks import (
    check_chain,
    check_counts,
    check_last,
    check_log,
    check_ranges,
    left_outputs,
)
from magnetar.pipelines.evidence.source_checks import Recount, check_sources
from magnetar.pipelines.evidence.tables import ManifestClaims, verify_table
from magnetar.pipelines.evidence.topic_checks import DeliveredRows, check_delivered
from magnetar.pipelines.execution import expressions, outputs
from magnetar.pipelines.execution.frames import read_range
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.manifest import Manifest
from magnetar.pipelines.state.status import open_lookup, partitions_there
from magnetar.pipelines.state.stored_messages import reader_options, sealed_count, stored_messages
from magnetar.spark.options.source_options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_KEPT: Final = 100
"""Micro-batches that Spark keeps in its log by default."""
_AS_STORED: Final = ("bytes", "string")
"""Schemas whose values are the same in the topic as in the files of a micro-batch."""


class PipelineReport(NamedTuple):
    """What `verify` found."""

    lines: list[str]
    """What was checked."""
    findings: list[Discrepancy]
    unseen: list[str]
    """What was not checked, and why."""


def verify(pipeline: Pipeline, spark: SparkSession | None, *, since: int = 0) -> PipelineReport:
    """Verify a pipeline from batch ``since`` on; without Spark neither sources nor tables are read again."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    query = query_that_ran(pipeline)
    whole, wrong = checkpoint.manifests()
    manifests = [one for one in whole if one.batch >= since]
    last = max((one.batch for one in whole), default=-1)
    findings = [Discrepancy("manifests", text) for text in wrong]
    findings += check_chain(manifests, since)
    findings += [
        Discrepancy(f"batch {one.batch}", f"the manifest is of query {one.query}, and the checkpoint of {query}")
        for one in manifests
        if one.query != query
    ]
    findings += check_ranges(manifests, checkpoint.starts(), _logged(checkpoint, pipeline, manifests))
    findings += check_counts(manifests)
    findings += check_last(manifests, checkpoint.committed(), since)
    findings += check_log(checkpoint.batches(), checkpoint.commits(), _kept(pipeline), since)
    total = sum(one.rows_in for one in manifests)
    lines = [f"{len(manifests)} manifests, {total:,} rows: chain, ranges and counts"]
    unseen: list[str] = []
    if not manifests and not findings:
        unseen.append("micro-batches: none has ended yet, so there is nothing to compare")
    if spark is not None:
        findings += check_sources(manifests, recounting(spark, pipeline))
        lines.append(f"sources: {total:,} rows read again")
    elif total:
        unseen.append(f"sources: {total:,} rows, which Spark reads")
    outputs_options = {sink.name: sink.options for sink in pipeline.topic_sinks}
    with open_lookup(pipeline) as lookup:
        for name, topic in _topics(pipeline):
            given = outputs_options.get(name, {})
            seen = delivered(
                lookup,
                topic,
                DeliveredRows(query, name),
                reader_options(pipeline, topic, given, CryptoFailureAction.CONSUME),
            )
            schema = given.get("schema", "bytes")
            contents = schema.lower() in _AS_STORED
            busy = checkpoint.under_way(last)
            findings += check_delivered(manifests, name, seen, since, contents=contents, under_way=busy)
            title = "dead letters" if name == DEAD_LETTERS else f"sink {name}"
            others = f" (and {seen.others:,} of others)" if seen.others else ""
            lines.append(f"{title}: {seen.there:,} messages in {topic}{others}")
            unseen += [f"{title}: {text}" for text in _unseen(seen, schema, contents)]
    for sink in pipeline.sinks:
        if isinstance(sink, TableSink):
            app = outputs.application(query, sink.name)
            looked = verify_table(spark, sink, app, ManifestClaims(whole, since, lambda: checkpoint.under_way(last)))
            findings += looked.findings
            unseen += looked.unseen
            lines.append(looked.line)
        elif isinstance(sink, PlainSink):
            lines.append(f"sink {sink.name}: {sink.format} keeps nothing")
    kinds = {sink.name: (sink.format,) for sink in pipeline.sinks if isinstance(sink, TableSink)}
    unseen += left_outputs(manifests, kinds | {name: ("topic",) for name, _ in _topics(pipeline)})
    return PipelineReport(lines, findings, unseen)


def query_that_ran(pipeline: Pipeline) -> str:
    """Return the id of the pipeline's query. Raises InvalidValueError if there is nothing to verify; changes
    nothing."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    query = checkpoint.query_id()
    if query is None and checkpoint.manifest_numbers():
        raise InvalidValueError(f"{checkpoint.directory}/metadata is gone: Spark's part of the checkpoint was changed")
    if query is None:
        raise InvalidValueError(
            f"pipeline {pipeline.name} has not run yet: there is nothing to verify in {pipeline.checkpoint}"
        )
    return query


def _kept(pipeline: Pipeline) -> int:
    """Return how many micro-batches Spark keeps in its log."""
    text = pipeline.spark.get("spark.sql.streaming.minBatchesToRetain", "")
    return int(text) if text.isdecimal() else _LOG_KEPT


def _unseen(seen: DeliveredRows, schema: str, contents: bool) -> Iterator[str]:
    if seen.there and not contents:
        yield f"contents of {seen.there:,} messages, which are counted (schema: {schema})"
    if seen.sealed:
        yield (
            f"contents of {sum(seen.sealed.values()):,} messages, which are encrypted and only counted: give the sink "
            "decryption.privateKey to have them compared"
        )


def _topics(pipeline: Pipeline) -> list[tuple[str, str]]:
    found = [(sink.name, sink.topic) for sink in pipeline.topic_sinks]
    return [*found, (DEAD_LETTERS, pipeline.dead_letter)] if pipeline.dead_letter is not None else found


def _logged(
    checkpoint: PipelineCheckpoint, pipeline: Pipeline, manifests: list[Manifest]
) -> Callable[[int], Mapping[str, Mapping[str, ReadPosition]] | None]:
    """Return a function for the ends in Spark's log. Sources are known by their topics: the log does not name them."""
    there = set(checkpoint.batches())
    topics = {
        topic: name
        for one in manifests
        for name, source in one.sources.items()
        for topic in (*source.start, *source.end)
    }

    def ends_of(batch: int) -> dict[str, dict[str, ReadPosition]] | None:
        if batch not in there:
            return None
        found: dict[str, dict[str, ReadPosition]] = {}
        for ends in checkpoint.ends(batch):
            names = {topics[topic] for topic in ends or {} if topic in topics}
            if ends and len(names) == 1:
                found[names.pop()] = ends
        return found

    return ends_of


def recounting(spark: SparkSession, pipeline: Pipeline) -> Recount:
    """Return a function that reads ranges again with Spark."""
    from pyspark.sql import functions as f

    by_name = {source.name: source for source in pipeline.topic_sources}

    def recount(
        name: str, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition]
    ) -> Mapping[str, tuple[int, int]]:
        if name not in by_name:
            raise InvalidValueError(f"the manifests speak of source {name}, which is not in {pipeline.file} any more")
        frame = read_range(spark, pipeline, by_name[name], start, end, lossy=True)
        if frame is None:
            return {}
        sums = expressions.sums(f.col(expressions.HASH))
        found = expressions.hashed(frame).groupBy("__topic").agg(f.count("*").alias("__rows"), *sums).collect()
        return {row["__topic"]: (row["__rows"], expressions.sum_of(row["__high"], row["__low"])) for row in found}

    return recount


def delivered(lookup: Lookup, topic: str, seen: DeliveredRows, options: SourceOptions) -> DeliveredRows:
    """Collect every message of an output topic, from the first that is still there."""
    for name in partitions_there(lookup, topic):
        for messages in stored_messages(lookup, name, START, last_position(lookup, name), options):
            _feed(name, messages, seen)
    return seen


def _feed(topic: str, messages: ColumnBuilder, seen: DeliveredRows) -> None:
    rows = zip(
        messages.ledgers().tolist(),
        messages.entries().tolist(),
        messages.places().tolist(),
        messages.producer_names().to_pylist(),
        messages.sequence_ids().tolist(),
        messages.keys().to_pylist(),
        messages.values().to_pylist(),
        messages.properties().to_pylist(),
        strict=True,
    )
    for ledger, entry, place, producer, sequence, key, value, properties in rows:
        if (count := sealed_count(properties)) is not None:
            seen.add_sealed(producer, sequence, count)
            continue
        number = zlib.crc32((key or b"") + b"\0" + (value or b""))
        seen.add(topic, ReadPosition(ledger, entry, place), producer, sequence, number)
