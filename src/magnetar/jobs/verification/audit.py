"""``magnetar jobs audit``: checks that every message is there, once, in order, and as it was sent.

Each task reads its units without values and gives back runs of sequence ids (`sequence_runs`) and what could not be
read: a few rows, whatever the topic's size, and no shuffle. The driver joins the runs. Where ids overlap, those
ranges are read a second time with their content, and counted by Spark, so that a repetition (same id, same content)
is distinguished from an id that was used again (other content), as by producers that start over without deduplication.

    gap        entries that should be there are not: trimmed while reading, lost, or unreadable; damaged ones too
    repeat     a message is there more than once, same producer, sequence id and content
    reused     a sequence id is there more than once with different content
    order      a producer's sequence id is lower than one before it
    skipped    with dense: ids of a producer that no message has
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.read_position import ReadPosition
from magnetar.jobs.reader.segment_reader import Missing
from magnetar.jobs.reader.unit_reader import Access, Unit, read, spread
from magnetar.jobs.verification.content_hash import COLUMNS, content_hashes
from magnetar.jobs.verification.sequence_runs import (
    IdOverlap,
    RunBuilder,
    SequenceRun,
    breaks,
    coarse,
    merged,
    overlaps,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINDINGS_MAX: Final = 10_000
"""Findings of each kind that are listed; the counts are of all."""
_PLACE: Final = pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch", pa.int64())])
_PLACE_SQL: Final = "struct<ledger: bigint, entry: bigint, batch: bigint>"
_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("producer", pa.string()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("messages", pa.int64()),
        ("start", _PLACE),
        ("end", _PLACE),
        ("why", pa.string()),
    ]
)
_SQL: Final = (
    "topic string, producer string, first bigint, last bigint, messages bigint, "
    f"start {_PLACE_SQL}, end {_PLACE_SQL}, why string"
)
_REPEATS_SQL: Final = (
    "topic string, producer string, id bigint, content bigint, ledger bigint, entry bigint, batch bigint"
)
_ROWS: Final = 4_096


class AuditFinding(NamedTuple):
    """One thing that is wrong in a topic; its fields are the columns of the written result."""

    kind: str
    topic: str
    place: str
    """ledger:entry:batch of the first message that it is about."""
    until: str
    """The last one, or the one it collides with; may be empty."""
    producer: str
    sequence: int | None
    messages: int
    """How many it is about, as far as that is known; entries where the messages are gone."""
    detail: str


class IdCollision(NamedTuple):
    """One sequence id that several messages have."""

    topic: str
    producer: str
    id: int
    copies: int
    contents: int
    """How many different contents they have."""
    first: ReadPosition
    last: ReadPosition


@dataclass
class Audit:
    """The result of an audit."""

    messages: int = 0
    producers: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Number of findings by kind."""
    findings: list[AuditFinding] = field(default_factory=list)

    def add(self, found: AuditFinding) -> None:
        """Count a finding, and keep it if it is among the first `FINDINGS_MAX` of its kind."""
        self.counts[found.kind] = number = self.counts.get(found.kind, 0) + 1
        if number <= FINDINGS_MAX:
            self.findings.append(found)


# what a task does ------------------------------------------------------------------------------------------------


def runs_of(access: Access, unit: Unit, *, dense: bool) -> Iterator[SequenceRun | tuple[str, Missing]]:
    """Yield one unit's runs, and what is missing in it."""
    missing: list[tuple[str, Missing]] = []
    maker = RunBuilder(unit.topic, dense=dense)

    def miss(topic: str, one: Missing) -> None:
        missing.append((topic, one))

    for batch in read(access, unit, RunBuilder.COLUMNS, values=False, on_missing=miss, for_audit=True):
        yield from maker.add(batch)
    yield from maker.finish()
    yield from missing


def _packed(rows: Iterator[SequenceRun | tuple[str, Missing]]) -> Iterator[Any]:
    """Yield rows as record batches of `_SCHEMA`."""
    waiting: list[tuple[Any, ...]] = []
    for row in rows:
        if isinstance(row, SequenceRun):
            waiting.append((*row, None))
        else:
            topic, one = row
            waiting.append((topic, None, 0, 0, 0, one.start, one.stop, one.why))
        if len(waiting) == _ROWS:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[tuple[Any, ...]]) -> Any:
    columns = [list(column) for column in zip(*rows, strict=True)]
    for number in (5, 6):
        columns[number] = [one._asdict() for one in columns[number]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)], schema=_SCHEMA
    )


def suspects_of(access: Access, unit: Unit, suspected: Sequence[IdOverlap]) -> Iterator[Any]:
    """Yield record batches of the unit's messages whose ids may be there twice, with the hash of their content."""
    wanted = [one for one in suspected if one.topic == unit.topic]

    def ignore(topic: str, one: Missing) -> None: ...

    columns = (*RunBuilder.COLUMNS, *COLUMNS)
    for batch in read(access, unit, columns, on_missing=ignore, for_audit=True) if wanted else ():
        producers, ids = batch.column("__producerName"), batch.column("__sequenceId")
        here = set(pc.unique(producers).to_pylist())
        keep = pa.array([False] * batch.num_rows)
        for one in wanted:
            if one.producer not in here:
                continue
            inside = pc.and_(pc.greater_equal(ids, one.first), pc.less_equal(ids, one.last))
            keep = pc.or_(keep, pc.and_(inside, pc.equal(producers, one.producer)))
        content = pa.array(content_hashes(batch).view("int64"))
        rows = pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(unit.topic), batch.num_rows), producers, ids, content,
                *(batch.column(name).cast(pa.int64()) for name in RunBuilder.COLUMNS[:3]),
            ],
            names=["topic", "producer", "id", "content", "ledger", "entry", "batch"],
        )  # fmt: skip
        yield rows.filter(keep)


# what the driver does --------------------------------------------------------------------------------------------


def judge(
    rows: Sequence[SequenceRun | tuple[str, Missing]],
    look_again: Callable[[list[IdOverlap]], tuple[dict[str, int], list[IdCollision]]],
    *,
    dense: bool,
) -> Audit:
    """Find everything that is wrong. ``look_again`` counts ids that are there more than once, by kind, and names
    them."""
    audit = Audit()
    runs = merged((row for row in rows if isinstance(row, SequenceRun)), dense=dense)
    audit.messages = sum(run.messages for run in runs)
    audit.producers = len({run[:2] for run in runs})
    for row in rows:
        if not isinstance(row, SequenceRun):
            topic, one = row
            same = one.start.ledger == one.stop.ledger
            entries = one.stop.entry - one.start.entry if same else 0
            audit.add(AuditFinding("gap", topic, str(one.start), f"before {one.stop}", "", None, entries, one.why))
    suspected = coarse(overlaps(runs))
    counts, collisions = look_again(suspected) if suspected else ({}, [])
    for found in collisions:
        audit.add(_of_collision(found))
    audit.counts.update(counts)
    twice = {(one.topic, one.producer, one.id) for one in collisions}
    for before, after in breaks(runs):
        if after.first > before.last:
            if dense:
                audit.add(_skipped(before, after))
        elif (after.topic, after.producer, after.first) not in twice:
            text = f"comes after {before.last} at {before.end}"
            audit.add(
                AuditFinding(
                    "order", *_where(after), str(before.end), after.producer, after.first, after.messages, text
                )
            )
    return audit


def _where(run: SequenceRun) -> tuple[str, str]:
    return run.topic, str(run.start)


def _of_collision(found: IdCollision) -> AuditFinding:
    kind = "repeat" if found.contents == 1 else "reused"
    what = "the same content" if found.contents == 1 else f"{found.contents} different contents"
    return AuditFinding(
        kind, found.topic, str(found.first), str(found.last), found.producer, found.id, found.copies - 1,
        f"{found.copies} messages with {what}",
    )  # fmt: skip


def _skipped(before: SequenceRun, after: SequenceRun) -> AuditFinding:
    count = after.first - before.last - 1
    return AuditFinding(
        "skipped", after.topic, str(before.end), str(after.start), after.producer, before.last + 1, count,
        f"no message has the ids {before.last + 1} to {after.first - 1}",
    )  # fmt: skip


def audit(spark: SparkSession, access: Access, found: Sequence[Unit], *, dense: bool = False) -> Audit:
    """Audit these units. Raises what reading raises; missing messages are findings, not errors."""
    frame = spread(spark, found, lambda unit: _packed(runs_of(access, unit, dense=dense)), _SQL)
    rows = [_row(one) for one in frame.toArrow().to_pylist()]

    def look_again(suspected: list[IdOverlap]) -> tuple[dict[str, int], list[IdCollision]]:
        topics = {one.topic for one in suspected}
        units = [unit for unit in found if unit.topic in topics]
        return _collisions(spark, access, units, suspected)

    return judge(rows, look_again, dense=dense)


def _row(one: dict[str, Any]) -> SequenceRun | tuple[str, Missing]:
    start, end = ReadPosition(**one["start"]), ReadPosition(**one["end"])
    if one["why"] is not None:
        return one["topic"], Missing(start, end, one["why"])
    return SequenceRun(one["topic"], one["producer"], one["first"], one["last"], one["messages"], start, end)


def _collisions(
    spark: SparkSession, access: Access, units: list[Unit], suspected: list[IdOverlap]
) -> tuple[dict[str, int], list[IdCollision]]:
    from pyspark.sql import functions as f

    frame = spread(spark, units, lambda unit: suspects_of(access, unit, suspected), _REPEATS_SQL)
    place = f.struct("ledger", "entry", "batch")
    counted = (
        frame.groupBy("topic", "producer", "id")
        .agg(
            f.count("*").alias("copies"),
            f.countDistinct("content").alias("contents"),
            f.min(place).alias("first"),
            f.max(place).alias("last"),
        )
        .where("copies > 1")
        .cache()
    )
    try:
        kinds = counted.groupBy((f.col("contents") == 1).alias("same")).count().collect()
        counts = {"repeat" if row[0] else "reused": int(row[1]) for row in kinds}
        named = [
            IdCollision(row[0], row[1], row[2], row[3], row[4], ReadPosition(*row["first"]), ReadPosition(*row["last"]))
            for row in counted.orderBy("first").limit(FINDINGS_MAX).collect()
        ]
    finally:
        counted.unpersist()
    return counts, named
