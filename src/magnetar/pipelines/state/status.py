"""``magnetar pipeline status``: what the checkpoint, and the broker if it answers, say of a pipeline."""

from __future__ import annotations

from magnetar.client.bulk.entry_scanner import EntryScanner
from magnetar.client.bulk.positions import last_position
from magnetar.client.errors import ClientError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.pipelines.declaration.model import DEAD_LETTERS, Pipeline, TopicSource
from magnetar.pipelines.declaration.secrets import resolve
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.manifest import Manifest
from magnetar.runtime.clock import SystemClock
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name

_COUNTED = 20_000
"""A lag is counted up to so many messages per topic-partition; counting means reading."""
_RECENT = 10


def open_lookup(pipeline: Pipeline) -> Lookup:
    """Connect to the pipeline's broker, with the file's secrets resolved."""
    return pipeline.login.lookup(resolve(pipeline.service_url))


def topic_partitions_of(lookup: Lookup, source: TopicSource) -> list[str]:
    """Return the topic-partitions that a source would read now."""
    given = {"service.url": "pulsar://not-used:6650", "subscription": source.subscription, **source.options}
    return topic_partitions(lookup, source_options(given).topics, create=False)


def partitions_there(lookup: Lookup, topic: str) -> list[str]:
    """Return the topic-partitions of an output; none if nothing was ever written to it."""
    try:
        return topic_partitions(lookup, topics_by_name([topic]), create=False)
    except RefusedError as error:
        if error.code is ServerError.TopicNotFound:
            return []
        raise


def topics_of(pipeline: Pipeline) -> list[str]:
    """Ask the broker for every topic of the file and return a line for each. ClientError if it does not answer."""
    lines = []
    with open_lookup(pipeline) as lookup:
        for source in pipeline.topic_sources:
            found = topic_partitions_of(lookup, source)
            if not found:
                raise InvalidValueError(f"{source.where}: sources.{source.name}: no topic matches")
            lines.append(f"source {source.name}: {', '.join(found)}")
        sinks = [(f"sink {sink.name}", sink.topic) for sink in pipeline.topic_sinks]
        if pipeline.dead_letter is not None:
            sinks.append(("dead letters", pipeline.dead_letter))
        for title, topic in sinks:
            count = len(partitions_there(lookup, topic))
            there = f"{count} topic-partition{'s' if count != 1 else ''}" if count else "not there yet"
            lines.append(f"{title}: {topic}, {there}")
    return lines


def status(pipeline: Pipeline) -> list[str]:
    """Return the status as lines of text."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    identity = checkpoint.identity()
    if identity is None:
        return [f"pipeline {pipeline.name} has not run yet: there is no checkpoint in {pipeline.checkpoint}"]
    manifests, wrong = checkpoint.manifests()
    lines = [f"pipeline {identity['pipeline']}, query {checkpoint.query_id() or 'not started yet'}", *wrong]
    begun, done = max(checkpoint.batches(), default=-1), checkpoint.committed()
    if begun > done:
        lines.append(f"micro-batch {begun} is under way, or was when the pipeline ended; it will be repeated")
    if manifests:
        lines += _history(manifests)
    return lines + _lags(pipeline, manifests, checkpoint.starts())


def _history(manifests: list[Manifest]) -> list[str]:
    last, recent = manifests[-1], manifests[-_RECENT:]
    ago = (SystemClock().now_ms() - last.times["ended_ms"]) / 1000
    took = sum(one.times["ended_ms"] - one.times["began_ms"] for one in recent) / 1000
    rows = sum(one.rows_in for one in recent)
    lines = [
        f"last micro-batch {last.batch}: {last.rows_in:,} rows, {_duration(ago)} ago, "
        f"{(last.times['ended_ms'] - last.times['began_ms']) / 1000:.1f} s",
        f"last {len(recent)} micro-batches: {rows:,} rows in {took:.1f} s, {rows / max(took, 0.001):,.0f} rows/s",
    ]
    for name, output in last.outputs.items():
        total = sum(one.outputs[name].rows for one in manifests if name in one.outputs)
        title = "dead letters" if name == DEAD_LETTERS else f"sink {name}"
        lines.append(f"{title}: {total:,} rows in all, {output.target}")
    causes: dict[str, int] = {}
    for one in manifests:
        for place, check in one.checks.items():
            for cause, times in check.causes.items():
                causes[f"{place}: {cause}"] = causes.get(f"{place}: {cause}", 0) + times
    lines += [f"    {cause}: {times:,} rows" for cause, times in sorted(causes.items())]
    return lines


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.0f} h"
    )


def _lags(pipeline: Pipeline, manifests: list[Manifest], starts: dict[str, dict[str, ReadPosition]]) -> list[str]:
    lines = []
    try:
        with open_lookup(pipeline) as lookup:
            for source in pipeline.topic_sources:
                at = starts.get(source.name, {})
                if manifests and source.name in manifests[-1].sources:
                    ends = manifests[-1].sources[source.name].end
                    at = {topic: ReadPosition.parse(text) for topic, text in ends.items()}
                messages, more = 0, False
                for topic in topic_partitions_of(lookup, source):
                    counted = _behind(lookup, topic, at.get(topic, START))
                    messages += counted
                    more = more or counted >= _COUNTED
                lines.append(f"source {source.name}: lag {'at least ' if more else ''}{messages:,} messages")
    except ClientError as error:
        lines.append(f"the broker does not answer, so there is no lag: {error}")
    return lines


def _behind(lookup: Lookup, topic: str, at: ReadPosition) -> int:
    last = last_position(lookup, topic)
    if at >= last:
        return 0
    scanner = EntryScanner(lookup, topic)
    try:
        entries = scanner.scan(at, last, messages=_COUNTED).entries
    finally:
        scanner.close()
    return min(sum(one.messages for one in entries) - at.batch, _COUNTED)
