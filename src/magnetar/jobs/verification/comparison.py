"""``magnetar jobs compare``: checks that two topics, in one cluster or two, hold the same messages.

First digests: every message falls into a bucket of about ten thousand, and each task gives for each of its buckets how
many messages it has and the sum and the exclusive or of their contents' hashes (`content_hash`), which do not depend
on order. No message leaves its task. Then only buckets that differ are read again, and their messages joined, so what
is reported is exact: which message is missing on which side, and where it is on the other.

Positions differ between clusters, so messages are matched by what their producer gave them: partition, producer and
sequence id (a replicated message keeps both), in buckets of ids. Where the producers differ (a mirror, a replay,
another number of partitions) they are matched by content, in buckets of the content's hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # publishes no types

from magnetar.jobs.reader.unit_reader import Access, Missing, Unit, read, spread
from magnetar.jobs.verification.content_hash import COLUMNS, content_hashes
from magnetar.jobs.verification.digest_table import DigestTable
from magnetar.jobs.verification.sequence_runs import RunBuilder
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

BUCKET: Final = 10_000
"""Messages in a bucket, about."""
DIFFERENCES_MAX: Final = 10_000
WAYS: Final = ("producer", "content")
_READ: Final = (*RunBuilder.COLUMNS, *COLUMNS)
_DIGEST_SQL: Final = "unit int, owner string, number bigint, messages bigint, total bigint, mixed bigint"
_MESSAGE_SQL: Final = (
    "owner string, number bigint, id bigint, content bigint, topic string, ledger bigint, entry bigint, batch bigint"
)


class DigestBucket(NamedTuple):
    """The key of a bucket of messages that are compared together."""

    owner: str
    """Partition and producer; empty when matched by content."""
    number: int


class BucketDigest(NamedTuple):
    """The digest of a bucket's messages; two can be added."""

    messages: int
    total: int
    """Sum of the contents' hashes, modulo 2^64, as a signed number."""
    mixed: int
    """Their exclusive or."""

    def plus(self, other: BucketDigest) -> BucketDigest:
        """Return the digest of both together."""
        return BucketDigest(self.messages + other.messages, _signed(self.total + other.total), self.mixed ^ other.mixed)


class Side(NamedTuple):
    """One of the two topics."""

    name: str
    access: Access
    units: Sequence[Unit]


class Difference(NamedTuple):
    """A message that is not the same on both sides."""

    kind: str
    """``only in A``, ``only in B``, or ``differs``: same producer and id, other content."""
    owner: str
    """Partition and producer."""
    id: int
    """Sequence id, or the content's hash."""
    copies_a: int
    copies_b: int
    place_a: str
    """topic ledger:entry:batch of the first one on that side."""
    place_b: str


class Comparison(NamedTuple):
    """The result of a comparison."""

    messages_a: int
    messages_b: int
    buckets: int
    differing: int
    counts: dict[str, int]
    differences: list[Difference]
    """At most `DIFFERENCES_MAX`."""
    missing: list[str]
    """What could not be read, on either side."""


def _signed(number: int) -> int:
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


class Matching(NamedTuple):
    """How messages of the two sides are matched."""

    way: str
    """One of `WAYS`."""
    buckets: int
    """Number of buckets, when matched by content."""

    def of(self, batch: Any, topic: str) -> tuple[Any, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return for each row of a record batch: owner (a dictionary), bucket's number, id to match by, content's
        hash."""
        content = content_hashes(batch)
        as_signed = content.view(np.int64)
        if self.way == "content":
            owners = pa.DictionaryArray.from_arrays(pa.array(np.zeros(batch.num_rows, np.int32)), pa.array([""]))
            return owners, (content % np.uint64(self.buckets)).astype(np.int64), as_signed, as_signed
        ids = batch.column("__sequenceId").to_numpy().astype(np.int64)
        partition = max(TopicName.parse(topic).partition_index, 0)
        owners = _prefixed(f"{partition} ", batch.column("__producerName"))
        return owners, ids // BUCKET, ids, as_signed


def _prefixed(prefix: str, names: Any) -> Any:
    """Put the prefix before each name, of which there are few; the result is a dictionary again."""
    coded = names.dictionary_encode()
    texts = pa.array([prefix + name for name in coded.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, texts)


def digests_of(access: Access, unit: Unit, number: int, matching: Matching) -> Iterator[Any]:
    """Yield one unit's buckets as record batches, one row each; what cannot be read is a row without messages."""
    found = DigestTable()
    missing: list[str] = []

    def miss(topic: str, one: Missing) -> None:
        missing.append(f"{topic}: {one}")

    for batch in read(access, unit, _READ, on_missing=miss):
        owners, buckets, _, content = matching.of(batch, unit.topic)
        found.add(owners, buckets, content)
    rows = [(number, *tally) for tally in found]
    rows += [(number, text, -1, 0, 0, 0) for text in missing]
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        kinds = (pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["unit", "owner", "number", "messages", "total", "mixed"])


def messages_of(access: Access, unit: Unit, matching: Matching, wanted: Sequence[DigestBucket]) -> Iterator[Any]:
    """Yield the messages of those buckets in a unit, as record batches of what is needed to match them."""
    by_owner: dict[str, NDArray[np.int64]] = {}
    for owner in {one.owner for one in wanted}:
        by_owner[owner] = np.array(sorted(one.number for one in wanted if one.owner == owner), np.int64)

    def ignore(topic: str, one: Missing) -> None: ...

    for batch in read(access, unit, _READ, on_missing=ignore):
        owners, buckets, ids, content = matching.of(batch, unit.topic)
        texts = owners.cast(pa.string())
        keep = np.zeros(batch.num_rows, np.bool_)
        for owner in owners.dictionary.to_pylist():
            if owner in by_owner:
                mine = pc.equal(texts, owner).to_numpy(zero_copy_only=False)
                keep |= mine & np.isin(buckets, by_owner[owner])
        if not keep.any():
            continue
        places = [batch.column(name).cast(pa.int64()) for name in RunBuilder.COLUMNS[:3]]
        topics = pa.repeat(pa.scalar(unit.topic), batch.num_rows)
        arrays = [texts, *(pa.array(one) for one in (buckets, ids, content)), topics, *places]
        names = ["owner", "number", "id", "content", "topic", "ledger", "entry", "batch"]
        yield pa.RecordBatch.from_arrays(arrays, names=names).filter(pa.array(keep))


def differing(a: dict[DigestBucket, BucketDigest], b: dict[DigestBucket, BucketDigest]) -> list[DigestBucket]:
    """Return the buckets whose digests differ between the sides."""
    return sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))


def matching_for(a: Side, b: Side, way: str) -> Matching:
    """Return how to match these topics. Raises InvalidValueError if they cannot be matched that way."""
    if way not in WAYS:
        raise InvalidValueError(f"messages are matched by {' or by '.join(WAYS)}, not by {way!r}")
    counts = [len({unit.topic for unit in side.units}) for side in (a, b)]
    if way == "producer" and counts[0] != counts[1] and min(counts):
        raise InvalidValueError(
            f"{a.name} has {counts[0]} partitions with messages and {b.name} {counts[1]}: producers number their "
            "messages in each partition, so they cannot be matched by producer; use --by content"
        )
    size = max(sum(unit.size for unit in side.units) for side in (a, b))
    # by protocol the size is not known; a thousand buckets do for ten million messages
    return Matching(way, max(size // (BUCKET * 100), 1_000))


def compare(spark: SparkSession, a: Side, b: Side, *, way: str = "producer") -> Comparison:
    """Compare two topics. Raises what reading raises; missing messages are part of the result."""
    matching = matching_for(a, b, way)
    (digests_a, units_a, missing_a), (digests_b, units_b, missing_b) = (
        _digests(spark, side, matching) for side in (a, b)
    )
    wanted = differing(digests_a, digests_b)
    counts: dict[str, int] = {}
    differences: list[Difference] = []
    if wanted:
        frames = []
        for side, held in ((a, units_a), (b, units_b)):
            some = [side.units[number] for number in sorted({at for key in wanted for at in held.get(key, ())})]
            frames.append(_messages(spark, side.access, some, matching, wanted))
        counts, differences = _joined(*frames)
    return Comparison(
        sum(one.messages for one in digests_a.values()),
        sum(one.messages for one in digests_b.values()),
        len(digests_a.keys() | digests_b.keys()),
        len(wanted),
        counts,
        differences,
        [*(f"A: {one}" for one in missing_a), *(f"B: {one}" for one in missing_b)],
    )


def _digests(
    spark: SparkSession, side: Side, matching: Matching
) -> tuple[dict[DigestBucket, BucketDigest], dict[DigestBucket, set[int]], list[str]]:
    """Compute the digests of a side, which of its units hold which bucket, and what is missing."""
    access = side.access
    numbers = {unit: number for number, unit in enumerate(side.units)}
    frame = spread(spark, side.units, lambda unit: digests_of(access, unit, numbers[unit], matching), _DIGEST_SQL)
    digests: dict[DigestBucket, BucketDigest] = {}
    held: dict[DigestBucket, set[int]] = {}
    missing: list[str] = []
    for row in frame.toArrow().to_pylist():
        if not row["messages"]:
            missing.append(row["owner"])
            continue
        key = DigestBucket(row["owner"], row["number"])
        digest = BucketDigest(row["messages"], row["total"], row["mixed"])
        digests[key] = digest if key not in digests else digests[key].plus(digest)
        held.setdefault(key, set()).add(row["unit"])
    return digests, held, missing


def _messages(
    spark: SparkSession, access: Access, units: list[Unit], matching: Matching, wanted: list[DigestBucket]
) -> DataFrame:
    return spread(spark, units, lambda unit: messages_of(access, unit, matching, wanted), _MESSAGE_SQL)


def _joined(left: DataFrame, right: DataFrame) -> tuple[dict[str, int], list[Difference]]:
    """Join the messages of both sides; count the differences and name the first ones."""
    from pyspark.sql import functions as f

    def counted(frame: DataFrame, side: str) -> DataFrame:
        return frame.groupBy("owner", "id").agg(
            f.count("*").alias(f"copies_{side}"),
            f.sort_array(f.collect_list("content")).alias(f"contents_{side}"),
            f.min(f.struct("topic", "ledger", "entry", "batch")).alias(f"place_{side}"),
        )

    same = f.col("contents_a").eqNullSafe(f.col("contents_b"))
    kind = f.when(f.col("copies_b").isNull() | (f.col("copies_a") > f.col("copies_b")), "only in A").otherwise(
        f.when(f.col("copies_a").isNull() | (f.col("copies_a") < f.col("copies_b")), "only in B").otherwise("differs")
    )
    found = (
        counted(left, "a")
        .join(counted(right, "b"), ["owner", "id"], "full_outer")
        .where(~same)
        .withColumn("kind", kind)
    ).cache()
    try:
        counts = {row[0]: int(row[1]) for row in found.groupBy("kind").count().collect()}
        rows = found.orderBy("owner", "id").limit(DIFFERENCES_MAX).collect()
    finally:
        found.unpersist()
    return counts, [
        Difference(
            row["kind"], row["owner"], row["id"], row["copies_a"] or 0, row["copies_b"] or 0,
            _place(row["place_a"]), _place(row["place_b"]),
        )
        for row in rows
    ]  # fmt: skip


def _place(row: Any) -> str:
    return "" if row is None else f"{row[0]} {row[1]}:{row[2]}:{row[3]}"
