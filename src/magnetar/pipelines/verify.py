"""Collects the evidence of a pipeline and has it judged (`evidence`): its manifests, its topics, its tables.

Sources are read again with Spark, by the code that read them; output topics are read with the client, which shows the
producer and number of every message.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from magnetar.client.lookup import Lookup
from magnetar.client.place import START, Place
from magnetar.client.reader import last_place
from magnetar.columnar.messages import Messages
from magnetar.columnar.opening import Failure
from magnetar.lakehouse import open_lake
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.pipelines import evidence, outputs, rows
from magnetar.pipelines.checkpoint import Checkpoint
from magnetar.pipelines.evidence import Delivered, Finding
from magnetar.pipelines.frames import read_range
from magnetar.pipelines.manifest import Manifest
from magnetar.pipelines.model import DEAD_LETTERS, Pipeline, TableSink
from magnetar.pipelines.secrets import resolve
from magnetar.pipelines.status import open_lookup, partitions_there
from magnetar.pipelines.stored import reading, sealed, stored
from magnetar.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AS_STORED: Final = ("bytes", "string")
"""Values that stand in the topic as they do in the files of a micro-batch."""


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
    findings += evidence.unfinished(manifests, checkpoint.committed(), since)
    total = sum(one.rows_in for one in manifests)
    lines = [f"{len(manifests)} manifests, {total:,} rows: chain, ranges and counts"]
    if spark is not None:
        findings += evidence.sources(manifests, recounting(spark, pipeline))
        lines.append(f"sources: {total:,} rows read again")
    outputs_options = {sink.name: sink.options for sink in pipeline.topic_sinks}
    with open_lookup(pipeline) as lookup:
        for name, topic in _topics(pipeline):
            given = outputs_options.get(name, {})
            seen = delivered(lookup, topic, Delivered(query, name), reading(pipeline, topic, given, Failure.CONSUME))
            schema = given.get("schema", "bytes")
            contents = schema.lower() in _AS_STORED
            findings += evidence.delivered(manifests, name, seen, since, contents=contents)
            title = "dead letters" if name == DEAD_LETTERS else f"sink {name}"
            lines.append(f"{title}: {seen.there:,} messages in {topic}{_remarks(seen, schema, contents)}")
    for sink in pipeline.sinks:
        if isinstance(sink, TableSink):
            commits, whole_history = _commits(sink, outputs.application(query, sink.name))
            findings += evidence.committed(manifests, sink.name, commits, since, whole_history)
            lines.append(f"sink {sink.name}: {len(commits):,} commits of {sink.format} {sink.path}")
    return Report(lines, findings)


def _remarks(seen: Delivered, schema: str, contents: bool) -> str:
    others = f" (and {seen.others:,} of others)" if seen.others else ""
    if not contents:
        others += f"; counted, contents not compared (schema: {schema})"
    if seen.sealed:
        others += (
            f"; {sum(seen.sealed.values()):,} of them are encrypted and only counted: give the sink "
            "decryption.privateKey to have them compared"
        )
    return others


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


def delivered(lookup: Lookup, topic: str, seen: Delivered, options: SourceOptions) -> Delivered:
    """Every message of an output topic, from the first that is still there."""
    for name in partitions_there(lookup, topic):
        for messages in stored(lookup, name, START, last_place(lookup, name), options):
            _feed(name, messages, seen)
    return seen


def _feed(topic: str, messages: Messages, seen: Delivered) -> None:
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
        if (count := sealed(properties)) is not None:
            seen.add_sealed(producer, sequence, count)
            continue
        number = zlib.crc32((key or b"") + b"\0" + (value or b""))
        seen.add(topic, Place(ledger, entry, place), producer, sequence, number)


def _commits(sink: TableSink, app: str) -> tuple[dict[int, list[int]], bool]:
    """Rows of each commit by micro-batch, and whether the history is whole."""
    try:
        options = {name: resolve(text) for name, text in sink.options.items()}
        history = open_lake(sink.path, sink.format, options).history()
    except NotFoundError:
        return {}, True
    found: dict[int, list[int]] = {}
    for one in history:
        if one.app == app and one.batch is not None:
            found.setdefault(one.batch, []).append(one.rows or 0)
    return found, not history or min(one.version for one in history) <= 1
