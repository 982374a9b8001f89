"""Collects the evidence of a pipeline and has it judged (`evidence`): its manifests, its topics, its tables.

Sources are read again with Spark, by the code that read them; output topics are read with the client, which shows the
producer and number of every message.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from magnetar.client.lookup import Lookup
from magnetar.client.place import START, Place
from magnetar.client.reader import RangeReader, last_place
from magnetar.columnar.block import Stored
from magnetar.columnar.messages import Messages, columns_of
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines import evidence, outputs, rows
from magnetar.pipelines.checkpoint import Checkpoint
from magnetar.pipelines.evidence import Delivered, Finding
from magnetar.pipelines.frames import read_range
from magnetar.pipelines.manifest import Manifest
from magnetar.pipelines.model import DEAD_LETTERS, Pipeline, TableSink
from magnetar.pipelines.status import open_lookup
from magnetar.spark.topics import listed, topic_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Report(NamedTuple):
    lines: list[str]
    """What was looked at."""
    findings: list[Finding]


def verify(pipeline: Pipeline, spark: SparkSession | None, *, since: int = 0) -> Report:
    """From batch ``since`` on; without Spark the sources are not read again."""
    checkpoint = Checkpoint(pipeline.checkpoint)
    query = checkpoint.query_id()
    if query is None:
        raise InvalidValueError(f"pipeline {pipeline.name} has not run yet: there is nothing to verify")
    whole, wrong = checkpoint.manifests()
    manifests = [one for one in whole if one.batch >= since]
    findings = [Finding("manifests", text) for text in wrong]
    findings += evidence.chain(manifests, since)
    findings += [
        Finding(f"batch {one.batch}", f"the manifest is of query {one.query}, and the checkpoint of {query}")
        for one in manifests
        if one.query != query
    ]
    findings += evidence.ranges(manifests, checkpoint.starts(), _logged(checkpoint, pipeline, manifests))
    findings += evidence.counts(manifests)
    done = checkpoint.committed()
    if not manifests or manifests[-1].batch < done:
        findings.append(Finding(f"batch {done}", "Spark has finished it, and there is no manifest"))
    total = sum(one.rows_in for one in manifests)
    lines = [f"{len(manifests)} manifests, {total:,} rows: chain, ranges and counts"]
    if spark is not None:
        findings += evidence.sources(manifests, recounting(spark, pipeline))
        lines.append(f"sources: {total:,} rows read again")
    with open_lookup(pipeline) as lookup:
        for name, topic in _topics(pipeline):
            seen = delivered(lookup, topic, Delivered(query, name))
            findings += evidence.delivered(manifests, name, seen, since)
            there = sum(sum(one) for one in seen.rows.values())
            others = f" (and {seen.others:,} of others)" if seen.others else ""
            lines.append(
                f"{'dead letters' if name == DEAD_LETTERS else f'sink {name}'}: {there:,} messages in {topic}{others}"
            )
    for sink in pipeline.sinks:
        if isinstance(sink, TableSink):
            findings += _table(sink, manifests, query)
            lines.append(f"sink {sink.name}: {sink.format} {sink.path}")
    return Report(lines, findings)


def _topics(pipeline: Pipeline) -> list[tuple[str, str]]:
    found = [(sink.name, sink.topic) for sink in pipeline.topic_sinks]
    return [*found, (DEAD_LETTERS, pipeline.dead_letter)] if pipeline.dead_letter is not None else found


def _logged(
    checkpoint: Checkpoint, pipeline: Pipeline, manifests: list[Manifest]
) -> Callable[[int], Mapping[str, Mapping[str, Place]] | None]:
    """Ends in Spark's log. Sources are told apart by their topics, since the log does not name them."""
    there = set(checkpoint.batches())
    topics = {
        topic: name
        for one in manifests
        for name, source in one.sources.items()
        for topic in (*source.start, *source.end)
    }

    def look(batch: int) -> dict[str, dict[str, Place]] | None:
        if batch not in there:
            return None
        found: dict[str, dict[str, Place]] = {}
        for ends in checkpoint.ends(batch):
            names = {topics[topic] for topic in ends or {} if topic in topics}
            if ends and len(names) == 1:
                found[names.pop()] = ends
        return found

    return look


def recounting(spark: SparkSession, pipeline: Pipeline) -> evidence.Recount:
    """Reads ranges with Spark."""
    from pyspark.sql import functions as f

    by_name = {source.name: source for source in pipeline.topic_sources}

    def recount(name: str, start: Mapping[str, Place], end: Mapping[str, Place]) -> Mapping[str, tuple[int, int]]:
        if name not in by_name:
            raise InvalidValueError(f"the manifests speak of source {name}, which is not in {pipeline.file} any more")
        frame = read_range(spark, pipeline, by_name[name], start, end, lossy=True)
        if frame is None:
            return {}
        sums = rows.sums(f.col(rows.HASH))
        found = rows.hashed(frame).groupBy("__topic").agg(f.count("*").alias("__rows"), *sums).collect()
        return {row["__topic"]: (row["__rows"], rows.sum_of(row["__high"], row["__low"])) for row in found}

    return recount


def delivered(lookup: Lookup, topic: str, seen: Delivered) -> Delivered:
    """Every message of an output topic, from the first that is still there."""
    for name in topic_partitions(lookup, listed([topic]), create=False):
        for entries in RangeReader(lookup, name, START, last_place(lookup, name), fail_on_data_loss=False):
            _feed(name, columns_of(Stored(*entry) for entry in entries), seen)
    return seen


def _feed(topic: str, columns: Messages, seen: Delivered) -> None:
    for ledger, entry, index, key, value, producer, sequence_id in zip(
        columns.ledgers().tolist(),
        columns.entries().tolist(),
        columns.places().tolist(),
        columns.keys().to_pylist(),
        columns.values().to_pylist(),
        columns.producer_names().to_pylist(),
        columns.sequence_ids().tolist(),
        strict=True,
    ):
        number = zlib.crc32((key or b"") + b"\0" + (value or b""))
        seen.add(topic, Place(ledger, entry, index), producer, sequence_id, number)


def _table(sink: TableSink, manifests: list[Manifest], query: str) -> list[Finding]:
    if sink.format == "parquet":
        return _parquet(sink, manifests)
    if sink.format == "delta":
        return _delta(sink, manifests, query)
    return []


def _parquet(sink: TableSink, manifests: list[Manifest]) -> list[Finding]:
    import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]  # publishes no types

    there = outputs.parquet_batches(sink)
    found = []
    for one in manifests:
        output, path = one.outputs[sink.name], there.get(one.batch)
        count: Any = 0 if path is None else pa_dataset.dataset(str(path), format="parquet").count_rows()
        if count != output.rows:
            where = f"batch {one.batch}, output {sink.name}"
            found.append(Finding(where, f"{path or sink.path}: {output.rows} rows were written and {count} are there"))
    last = max((one.batch for one in manifests), default=-1)
    for batch in sorted(there):
        if batch > last + 1:
            found.append(
                Finding(f"batch {batch}, output {sink.name}", f"{there[batch]} is there, and no manifest tells of it")
            )
    return found


def _delta(sink: TableSink, manifests: list[Manifest], query: str) -> list[Finding]:
    from deltalake import DeltaTable

    written = [one.batch for one in manifests if one.outputs[sink.name].rows]
    if not written:
        return []
    where = f"batch {written[-1]}, output {sink.name}"
    if not DeltaTable.is_deltatable(sink.path):
        return [Finding(where, f"there is no Delta table {sink.path}")]
    version = DeltaTable(sink.path).transaction_version(outputs.application(query, sink.name))
    if version is None or version < written[-1]:
        return [Finding(where, f"the table {sink.path} has batches up to {version}, the manifests up to {written[-1]}")]
    return []
