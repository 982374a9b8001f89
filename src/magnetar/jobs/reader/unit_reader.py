"""The reader of every job: a unit's entries, rows or DataFrame, wherever the unit comes from.

:func:`units` plans on the driver; :func:`entries` gives what is stored, :func:`read` gives record
batches with the columns of ``format("pulsar")``, and :func:`frame` a DataFrame whose tasks do that. What cannot be read
is passed to ``on_missing``, or, without one, ends the job with an error that names it: nothing is skipped in silence. A
segment that the broker removed under a direct unit is read by protocol instead, if there is a broker to ask; what it
has trimmed then comes out as missing, exactly.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from magnetar.client.bulk.data_loss import DataGap, DataLossError
from magnetar.client.bulk.range_reader import Entry, RangeReader
from magnetar.client.read_position import ReadPosition
from magnetar.columnar.arrow_decoder import ArrowDecoder, sql_schema
from magnetar.columnar.entries import metadata as heads
from magnetar.columnar.entries.block import (
    ALL,
    BLOCK_ROWS,
    ENTRY,
    ENTRY_END,
    ENTRY_START,
    FIRST,
    INDEX,
    LEDGER,
    NO_INDEX,
    STOP,
    EntryBlock,
)
from magnetar.columnar.entries.checksums import wrong_checksums
from magnetar.columnar.values import Binary, ValueDecoder
from magnetar.jobs.reader.ledger_copies import read_copy
from magnetar.jobs.reader.opaque_entries import readable_entry
from magnetar.jobs.reader.segment_reader import TABLE_ENTRIES, Entries, Missing, SegmentGoneError, read_piece
from magnetar.jobs.reader.units import Access, Unit, tasks_of, units
from magnetar.model.errors import InvalidValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Access",
    "Entries",
    "Missing",
    "Unit",
    "check_directory",
    "entries",
    "frame",
    "read",
    "spread",
    "spread_rows",
    "tasks_of",
    "units",
]

OnMissing = Callable[[str, Missing], None]


def entries(access: Access, unit: Unit) -> Iterator[Entries | Missing]:
    """Yield what is stored, in order. A block is valid until the next one is asked for (see `Entries`)."""
    if unit.lost:
        yield Missing(unit.start, unit.stop, unit.lost)
    elif unit.copy is not None:
        yield from read_copy(unit.copy)
    elif unit.piece is None:
        yield from _by_protocol(access, unit.topic, unit.start, unit.stop)
    else:
        try:
            yield from read_piece(Path(unit.ledgers), unit.piece)
        except SegmentGoneError as error:
            if access.url is None:
                why = f"{error}: the topic was trimmed or deleted while it was read"
                yield Missing(unit.start, unit.stop, why)
            else:
                yield from _by_protocol(access, unit.topic, unit.start, unit.stop)


def check_directory(access: Access, found: Sequence[Unit]) -> None:
    """Check that a data directory is the broker's own, by the newest entry of each topic-partition that is read there.

    Raises InvalidValueError. What either of the two cannot show any more is not judged.
    """
    newest = {unit.topic: unit for unit in found if unit.piece is not None}
    for unit in newest.values() if access.url is not None else ():
        piece = unit.piece
        assert piece is not None, "chosen so"
        shown = (one for one in range(piece.stop - 1, piece.first - 1, -1) if one not in piece.hidden)
        if (last := next(shown, None)) is None:
            continue
        at, after = (ReadPosition(piece.ledger, one - piece.base) for one in (last, last + 1))
        try:
            here = _first(read_piece(Path(unit.ledgers), piece._replace(first=last, stop=last + 1)))
        except SegmentGoneError:
            continue
        if here is not None and _first(_by_protocol(access, unit.topic, at, after)) not in (None, here):
            raise InvalidValueError(
                f"{access.directory} is not the directory of the broker at {access.url}: {unit.topic} has another "
                f"message at {at.ledger}:{at.entry} there"
            )


def _first(blocks: Iterator[Entries | Missing]) -> bytes | None:
    """Return the first entry, if it is there."""
    for block in blocks:
        if isinstance(block, Missing):
            return None
        if len(block):
            start = int(block.offsets[0])
            return bytes(block.data[start : start + int(block.lengths[0])])
    return None


def read(
    access: Access,
    unit: Unit,
    metadata: Sequence[str] = (),
    *,
    values: bool = True,
    on_missing: OnMissing | None = None,
    for_audit: bool = False,
) -> Iterator[Any]:
    """Yield Arrow record batches: ``value`` unless ``values`` is false, then the ``metadata`` columns of
    `arrow_decoder`.

    ``for_audit``: each entry's own checksum is checked, and of a message in chunks only the first one is a row. Raises
    DataLossError for what is missing or damaged if there is no ``on_missing``.
    """
    decoder = ArrowDecoder(unit.topic, ValueDecoder(Binary()), tuple(metadata))
    for block in entries(access, unit):
        if isinstance(block, Missing):
            _report(unit.topic, block, on_missing)
            continue
        data = block.data.view()
        data.flags.writeable = False
        for table in _tables(block, unit):
            yield from _rows(decoder, EntryBlock(data, table), unit.topic, values, on_missing, for_audit)
    for batch in decoder.flush():
        yield _without_value(batch, values)


def _tables(block: Entries, unit: Unit) -> Iterator[NDArray[np.int64]]:
    """Yield the metadata table of a block, some entries at a time."""
    for first in range(0, len(block), TABLE_ENTRIES):
        part = slice(first, first + TABLE_ENTRIES)
        ledgers, entries, offsets = block.ledgers[part], block.entries[part], block.offsets[part]
        table = np.zeros((BLOCK_ROWS, len(offsets)), np.int64)
        table[LEDGER], table[ENTRY], table[INDEX] = ledgers, entries, NO_INDEX
        table[ENTRY_START], table[ENTRY_END] = offsets, offsets + block.lengths[part]
        table[STOP] = ALL
        for row, place in ((FIRST, unit.start), (STOP, unit.stop)):
            if place.batch:
                table[row, (ledgers == place.ledger) & (entries == place.entry)] = place.batch
        yield table


def _rows(
    decoder: ArrowDecoder, block: EntryBlock, topic: str, values: bool, on_missing: OnMissing | None, for_audit: bool
) -> Iterator[Any]:
    """Decode most entries together, and those that need it one by one."""
    done = 0
    for index, why in _single_entries(block, checked=for_audit):
        for batch in decoder.add_block(block.part(done, index)):
            yield _without_value(batch, values)
        done = index + 1
        stored = block.stored(index)
        if why:
            here = ReadPosition(stored.ledger, stored.entry)
            _report(topic, Missing(here, here._replace(entry=here.entry + 1), why), on_missing)
            continue
        row = readable_entry(stored.data, first_chunks=for_audit)
        for batch in decoder.add(stored.ledger, stored.entry, row) if row is not None else ():
            yield _without_value(batch, values)
    for batch in decoder.add_block(block.part(done, len(block))):
        yield _without_value(batch, values)


def _single_entries(block: EntryBlock, *, checked: bool) -> list[tuple[int, str]]:
    """Return the entries to decode one by one, in order, with what is wrong; "" for a chunk or an encrypted entry."""
    count = len(block)
    table = np.empty((heads.METADATA_ROWS, count), np.int64)
    table[:BLOCK_ROWS] = block.table
    found: dict[int, str] = {}
    good = heads.read_metadata(block.data, table, 0, count)
    while good < count:
        found[good] = "its metadata cannot be read"
        good = heads.read_metadata(block.data, table, good + 1, count)
    for index in np.flatnonzero(table[heads.FLAGS] & (heads.ENCRYPTED | heads.CHUNK)).tolist():
        found.setdefault(index, "")
    if checked:
        for index in wrong_checksums(block.data, block.table):
            found[index] = "the producer's checksum does not match"
    return sorted(found.items())


def _report(topic: str, missing: Missing, on_missing: OnMissing | None) -> None:
    if on_missing is None:
        raise DataLossError(f"{topic}: {missing}")
    on_missing(topic, missing)


def frame(
    spark: SparkSession,
    access: Access,
    found: Sequence[Unit],
    metadata: Sequence[str] = (),
    *,
    values: bool = True,
) -> DataFrame:
    """Return the rows of all units as a DataFrame read by Spark's tasks; memory stays at a few batches per task."""
    schema = sql_schema(Binary.schema, tuple(metadata))
    if not values:
        schema = schema.partition(", ")[2]

    def rows(unit: Unit) -> Iterator[Any]:
        return read(access, unit, metadata, values=values)

    return spread(spark, found, rows, schema)


def spread(spark: SparkSession, found: Sequence[Unit], rows: Callable[[Unit], Iterator[Any]], schema: str) -> DataFrame:
    """Compute ``rows`` of every unit (record batches of that schema) in Spark's tasks, several units in each."""

    def run(task: list[Unit]) -> Iterator[Any]:
        for unit in task:
            yield from rows(unit)

    return spread_rows(spark, tasks_of(list(found), spark.sparkContext.defaultParallelism), run, schema)


def spread_rows(
    spark: SparkSession, tasks: Sequence[Any], rows: Callable[[Any], Iterator[Any]], schema: str
) -> DataFrame:
    """Compute ``rows`` of each element of ``tasks`` (pickled) in a Spark task of its own; task n is partition n."""
    context = spark.sparkContext
    packed = context.parallelize([(pickle.dumps(task),) for task in tasks], max(len(tasks), 1))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for one in batch.column(0):
                yield from rows(pickle.loads(one.as_py()))

    with warnings.catch_warnings():
        # pyspark 4.3 looks for pandas here, which is not used
        warnings.simplefilter("ignore", FutureWarning)
        return spark.createDataFrame(packed, "task binary").mapInArrow(run, schema)


def _without_value(batch: Any, values: bool) -> Any:
    return batch if values else batch.select(batch.schema.names[1:])


def _by_protocol(access: Access, topic: str, start: ReadPosition, stop: ReadPosition) -> Iterator[Entries | Missing]:
    gaps: list[DataGap] = []
    at = start
    with access.lookup() as lookup:
        while at < stop:
            reader = RangeReader(
                lookup,
                topic,
                at,
                stop,
                poll_timeout=access.poll_timeout,
                fail_on_data_loss=False,
                on_gap=gaps.append,
            )
            try:
                for found in reader:
                    yield from _missing(gaps)
                    at = ReadPosition(found[-1].ledger, found[-1].entry + 1)
                    yield _block(found)
                yield from _missing(gaps)
                return
            except DataLossError as error:
                if error.gap is None:
                    raise
                # One entry whose checksum does not match: what stands before it was not yielded yet.
                if at < error.gap.start:
                    yield from _by_protocol(access, topic, at, error.gap.start)
                yield Missing(error.gap.start, error.gap.stop, "the checksum its producer gave it does not match")
                at = error.gap.stop


def _missing(gaps: list[DataGap]) -> Iterator[Missing]:
    while gaps:
        gap = gaps.pop(0)
        why = "trimmed or deleted" if gap.certain else "trimmed or deleted, if there was anything"
        yield Missing(gap.start, gap.stop, why)


def _block(found: list[Entry]) -> Entries:
    lengths = np.array([len(one.data) for one in found], np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return Entries(
        np.frombuffer(b"".join([one.data for one in found]), np.uint8),
        np.array([one.ledger for one in found], np.int64),
        np.array([one.entry for one in found], np.int64),
        offsets,
        lengths,
        None,
    )
