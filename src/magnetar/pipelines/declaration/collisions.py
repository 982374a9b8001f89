"""Parts of a file that are valid by themselves but conflict: cycles, and two things in one place.

A topic sink whose topic a source reads would feed itself for ever; so would dead letters. A table that is written where
a table source, another format or the checkpoint is would destroy it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from magnetar.lakehouse.model.options import TableKind, lake_options
from magnetar.model.errors import MagnetarError
from magnetar.model.names import TopicName
from magnetar.pipelines.declaration.document import Item, nearest
from magnetar.pipelines.declaration.model import (
    DEAD_LETTERS,
    Pipeline,
    Sink,
    TableSink,
    TableSource,
    TopicSink,
    TopicSource,
)
from magnetar.pipelines.declaration.place import directory_of, obstacle
from magnetar.pipelines.declaration.source_columns import kinds_of_source
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.topic_selection import matching


def note_collisions(root: Item, pipeline: Pipeline) -> None:
    """Note a mistake at the later one of two parts that collide."""
    for sink in pipeline.sinks:
        place = root.at("sinks", sink.name)
        if isinstance(sink, TopicSink):
            for source in _reading(pipeline, sink.topic):
                place.at("topic").problem(
                    f"source {source} reads this topic, so the pipeline would feed itself for ever; name another topic"
                )
        if isinstance(sink, TableSink):
            _note_places(place.at("path"), pipeline, sink)
            _note_partitioning(root, pipeline, sink)
        if (table := next((one for one in pipeline.sources if one.name == sink.source), None)) and isinstance(
            table, TableSource
        ):
            place.at("from").problem(
                f"{sink.source!r} is a table, which is read in each micro-batch as a whole and would be written again "
                f"each time; {_others(pipeline, sink)}"
            )
    if pipeline.dead_letter is not None:
        place = root.at("dead-letter")
        for source in _reading(pipeline, pipeline.dead_letter):
            place.problem(f"source {source} reads this topic, so dead letters would come back for ever; name another")
        for sink in pipeline.topic_sinks:
            if _plain(sink.topic) == _plain(pipeline.dead_letter):
                place.problem(f"sink {sink.name} writes this topic, too; {DEAD_LETTERS} need one of their own")


def _others(pipeline: Pipeline, sink: Sink) -> str:
    names = [one.name for one in (*pipeline.topic_sources, *pipeline.steps)]
    return f"'from' can be {', '.join(names)}" if names else "there is no stream to write"


def _reading(pipeline: Pipeline, topic: str) -> Iterator[str]:
    """Yield the names of the sources that read a topic."""
    for source in pipeline.topic_sources:
        if _plain(topic) in _read(source, topic):
            yield source.name


def _read(source: TopicSource, topic: str) -> set[str]:
    """Return the full names of a source's topics; for a pattern, ``topic`` if it matches."""
    try:
        topics = source_options({"service.url": "pulsar://checked-elsewhere:6650", **_only_topics(source)}).topics
        name = TopicName.parse(topic).parent
        if topics.expression:
            return set(matching([name.fqn], topics.namespace, topics.expression))
        return {_plain(one) for one in (*topics.names, *(one for one, _ in topics.partitions))}
    except MagnetarError:
        # It is reported at the option.
        return set()


def _only_topics(source: TopicSource) -> dict[str, str]:
    return {key: source.options[key] for key in ("topic", "topics", "topicsPattern", "assign") if key in source.options}


def _plain(topic: str) -> str:
    """Return the topic of a partition."""
    try:
        return TopicName.parse(topic).parent.fqn
    except MagnetarError:
        return topic


def _note_places(item: Item, pipeline: Pipeline, sink: TableSink) -> None:
    here = _directory(sink.path)
    if not here:
        return
    if wrong := obstacle(sink.path):
        item.problem(f"{sink.path!r} cannot be a table: {wrong}; name another place")
    for source in pipeline.sources:
        if isinstance(source, TableSource) and _directory(source.path or "") == here:
            item.problem(f"source {source.name} reads this place, so the pipeline would feed itself; name another")
    for other in _before(pipeline.sinks, sink):
        if isinstance(other, TableSink) and _directory(other.path) == here and other.format != sink.format:
            item.problem(f"sink {other.name} keeps a table of format {other.format} there; name another place")
        elif isinstance(other, TableSink) and (
            _within(_directory(other.path), here, 1) or _within(here, _directory(other.path), 1)
        ):
            item.problem(f"the table of sink {other.name} is inside this one, or around it; name another place")
    checkpoint = _directory(pipeline.checkpoint)
    if checkpoint and _within(checkpoint, here):
        item.problem(f"the checkpoint {pipeline.checkpoint} is there; a table needs a directory of its own")
    elif checkpoint and _within(here, checkpoint):
        item.problem(f"it is inside the checkpoint {pipeline.checkpoint}; a table needs a directory of its own")


def _within(inner: str, outer: str, least: int = 0) -> bool:
    """Return whether a place is at least so far below another one."""
    return inner.startswith(outer.rstrip("/") + "/") or (least == 0 and inner == outer)


def _note_partitioning(root: Item, pipeline: Pipeline, sink: TableSink) -> None:
    """Note columns to partition by that its source cannot have; those of steps are known to Spark only."""
    source = next((one for one in pipeline.topic_sources if one.name == sink.source), None)
    try:
        known = None if source is None else kinds_of_source(source)
        wanted = lake_options(TableKind(sink.format), {**sink.options, "path": sink.path or "-"}).partitioning
    except MagnetarError:
        # It is reported at the option.
        return
    for one in wanted if known else ():
        if one.column not in (known or {}) and "${" not in one.column:
            place = root.at("sinks", sink.name, "options", "partitionColumns")
            place.problem(f"source {sink.source} has no column {one.column!r}; {nearest(one.column, known or {})}")


def _before(sinks: Sequence[Sink], sink: Sink) -> Sequence[Sink]:
    return sinks[: sinks.index(sink)]


def _directory(path: str) -> str:
    """Return the absolute path; another kind of URL as it is."""
    return directory_of(path) or path.rstrip("/")
