"""Compaction of a large topic with Spark, with the exact result of the broker's own (docs/offload.md, decision 015).

The broker says what is to be compacted (its view so far, and closed ledgers up to a horizon) and keeps that from being
trimmed. Tasks read it from the broker's directory, unit by unit. First pass: the last event of every key per unit, and
by a shuffle the last of all (:mod:`magnetar.jobs.compaction.rules`); payloads do not travel. Second pass: each unit is
read again by the task that got its surviving places, and what stays is written as a file at the broker's
``offloadUrl``. The broker takes the files over as a run of compaction of its own, unless another run finished
meanwhile; the files are then deleted in either case.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.read_position import START, ReadPosition
from magnetar.client.rest import Rest, path_of
from magnetar.compaction.survivors import INDEX_BITS
from magnetar.jobs.compaction.entry_columns import EntryColumns, compacted_entries, key_events, of_topic, of_view
from magnetar.jobs.compaction.key_table import Keys, KeyTable
from magnetar.jobs.compaction.rules import CHUNKED, KEY, ChunkState, EventCollector, LastEvent
from magnetar.jobs.reader.segment_reader import Missing
from magnetar.jobs.reader.topic_ledgers import read_directory
from magnetar.jobs.reader.unit_reader import Access, Unit, entries
from magnetar.jobs.reader.units import direct_units
from magnetar.model.errors import ConflictError, InvalidValueError
from magnetar.model.names import TopicName
from magnetar.offload.format import NO_TIME, LedgerWriter
from magnetar.offload.object_store import folder_of, object_store_at

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

_EVENTS: Final = "kind int, name binary, code bigint, unit int, messages bigint"
"""Besides the name there are numbers only: Spark aggregates anything else by sorting. ``code`` is `_code`."""
_NAMES: Final = [word.split()[0] for word in _EVENTS.split(", ")]
_NUMBERS: Final = ("code", "unit", "messages")
_FILES: Final = "unit int, name string, digest string, entries bigint, bytes bigint, messages bigint"
_UNIT: Final = 2
"""Kind of a row that stands for a unit itself, with its number of messages."""
_ENDED: Final = 3
"""Kind of a row that says which chunked message (uuid) ended at a place, and its key; the name is `_pair`."""
_OVER: Final = 2
_IN_CHUNKS: Final = 1
_FLAG_BITS: Final = 2
_POLL_SECONDS: Final = 0.1
_KEYS_HELD: Final = 1_000_000
"""Above so many keys the units of a task are no longer taken together."""
_EVENT_ROWS: Final = 10_000
"""Rows of a record batch, at most."""


class CompactionJobPlan(NamedTuple):
    """What to compact; it is pickled and sent to workers."""

    rest: Rest
    topic: str
    generation: int
    horizon: int
    retain_keyless: bool
    units: tuple[Unit, ...]
    """Those of the previous view, then the topic's, in order."""
    from_view: int
    """How many of them are the view's."""
    url: str
    """The object store, as the workers reach it."""
    folder: str
    """Folder of this job in that store."""


class CompactionResult(NamedTuple):
    """The result of a compaction; its fields are the columns of the command's table."""

    topic: str
    messages: int
    """Messages that were read."""
    kept: int
    entries: int
    bytes: int
    """Bytes of the entries that stay."""
    seconds: float


def plan(rest: Rest, directory: Path, topic: str, to: str | None = None) -> CompactionJobPlan | None:
    """Ask the broker what to compact; None if there is nothing. ``topic`` is without partitions, or one partition.

    ``to``: the broker's ``offloadUrl`` as the workers reach it. Raises RestRefusedError, InvalidValueError,
    DataLossError.
    """
    name = TopicName.parse(topic)
    answer = rest.ask("POST", f"{path_of(topic)}/compaction/plan")
    if not answer["url"]:
        raise InvalidValueError("the broker has no place where a result could be handed over: start it with offloadUrl")
    if answer["horizon"] <= answer["start"]:
        return None
    found = read_directory(directory)
    log = found.logs.get(name.fqn)
    if log is None or log.id != answer["log"]:
        raise InvalidValueError(f"{directory} is not the directory of the broker at {rest.url}: no such {name.fqn}")
    before: list[Unit] = []
    if answer["view"]:
        view = found.logs.get(answer["view"])
        if view is None:
            # Another compaction has taken its place since the broker answered.
            raise ConflictError(f"{topic}: was compacted by another run meanwhile; try again in a moment")
        before = list(direct_units(found, view, START, None, view.end))
    start, stop = (ReadPosition(*answer[which]) for which in ("startPosition", "horizonPosition"))
    units = [*before, *direct_units(found, log, start, stop, answer["horizon"])]
    for unit in units:
        if unit.lost:
            raise DataLossError(f"{unit.topic}: {unit.start.ledger}:{unit.start.entry} and after: {unit.lost}")
    if log.end < answer["horizon"]:
        raise ConflictError(f"{topic}: the directory shows less than the broker has; try again in a moment")
    url = to or answer["url"]
    object_store_at(url)
    folder = f"compaction/{folder_of(name)}/{secrets.token_hex(8)}"
    return CompactionJobPlan(
        rest, name.fqn, answer["generation"], answer["horizon"], answer["retainKeyless"], tuple(units), len(before),
        url, folder,
    )  # fmt: skip


def compact(spark: SparkSession, plan: CompactionJobPlan) -> CompactionResult:
    """Compact a topic. Raises RestRefusedError (409 if another run finished meanwhile), ConflictError,
    PySparkException."""
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # pyspark 4.3 looks for pandas here, which is not used
            warnings.simplefilter("ignore", FutureWarning)
            messages, rows = _passes(spark, plan)
        stayed = sum(row["messages"] for row in rows)
        files = [row for row in rows if row["entries"]]
        _hand_over(plan, files, messages - stayed)
    finally:
        clear(plan)
    size = sum(row["bytes"] for row in files)
    count = sum(row["entries"] for row in files)
    return CompactionResult(plan.topic, messages, stayed, count, size, time.perf_counter() - began)


def clear(plan: CompactionJobPlan) -> None:
    """Delete the files that tasks have written; also once their session has ended, if it did so in the middle of them.
    Raises OSError."""
    place = object_store_at(plan.url)
    for number in range(len(plan.units)):
        place.delete(_file_name(plan, number))


def _passes(spark: SparkSession, plan: CompactionJobPlan) -> tuple[int, list[dict[str, Any]]]:
    """Run both passes; return the number of messages read, and a row of `_FILES` for every unit, in order."""
    from pyspark.sql import functions as f

    # Units are in the order of places, so the unit of the greatest place is the greatest unit.
    last = _events(spark, plan).groupBy("kind", "name").agg(*(f.max(one).alias(one) for one in _NUMBERS)).persist()
    try:
        kind, code = f.col("kind"), f.col("code")
        place = f.shiftright("code", _FLAG_BITS).alias("place")
        over = code.bitwiseAND(_OVER) != 0
        chunks = last.where((kind == CHUNKED) & ~over).select("name").collect()
        in_chunks = last.where((kind == KEY) & (code.bitwiseAND(_IN_CHUNKS) != 0)).select("name", place).collect()
        ended = last.where(kind == _ENDED).select("name", place).collect() if in_chunks else []
        chunk_state = ChunkState(frozenset(bytes(row[0]) for row in chunks), _last_in_chunks(in_chunks, ended))
        messages = last.where(kind == _UNIT).agg(f.sum("messages")).collect()[0][0]
        stays = last.where((kind == _UNIT) | ((kind == KEY) & ~over))
        found = (
            stays.select("unit", place).groupBy("unit").applyInArrow(_second_pass(plan, chunk_state), _FILES).collect()
        )
        return messages, sorted((row.asDict() for row in found), key=lambda row: int(row["unit"]))
    finally:
        last.unpersist()


def _code(place: Any, over: Any, in_chunks: Any) -> Any:
    """Encode the place of a last event and its flags in one number, greater for greater places."""
    return (place << _FLAG_BITS) | (over * _OVER) | (in_chunks * _IN_CHUNKS)


def _pair(key: bytes, uuid: bytes) -> bytes:
    return len(key).to_bytes(4, "big") + key + uuid


def _last_in_chunks(keys: Sequence[Any], ended: Sequence[Any]) -> frozenset[tuple[bytes, bytes]]:
    """Return key and uuid of the keys whose last message came in chunks; both arguments are pairs of name and place."""
    last = {bytes(name): place for name, place in keys}
    found = []
    for name, place in ended:
        key, uuid = name[4 : (stop := 4 + int.from_bytes(name[:4], "big"))], name[stop:]
        if last.get(bytes(key)) == place:
            found.append((bytes(key), bytes(uuid)))
    return frozenset(found)


def _rows(event: LastEvent, number: int) -> list[tuple[int, bytes, int, int, int]]:
    """Return the rows of `_EVENTS` for an event."""
    code = _code(event.place, event.over, event.uuid is not None)
    rows = [(event.kind, event.name, code, number, 0)]
    if event.uuid is not None:
        rows.append((_ENDED, _pair(event.name, event.uuid), _code(event.place, False, False), number, 0))
    return rows


def _events(spark: SparkSession, plan: CompactionJobPlan) -> DataFrame:
    """Run the first pass: rows of all units' events, and one for each unit itself."""
    count = len(plan.units)
    # Neighbouring units in one task: an event of a key that a later unit replaces is never shuffled.
    tasks = min(count, 2 * spark.sparkContext.defaultParallelism)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        some = UnitGroup(plan)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                some.add(number)
                if len(some.keys) > _KEYS_HELD:
                    yield from some.rows()
                    some = UnitGroup(plan)
        yield from some.rows()

    return spark.range(0, count, 1, tasks).mapInArrow(run, _EVENTS)


class UnitGroup:
    """Neighbouring units, read in order by one task, and the last events of their keys."""

    def __init__(self, plan: CompactionJobPlan) -> None:
        self.keys, self._collector = KeyTable(), EventCollector()
        self._plan = plan
        self._units: list[int] = []
        self._holding: list[int] = []
        """Units with entries; `_lasts` has the last ordinal of each."""
        self._lasts: list[int] = []

    def add(self, number: int) -> None:
        """Read the next unit. Raises DataLossError."""
        self._units.append(number)
        key_events(self._unit_entries(number), self.keys, self._collector)

    def _unit_entries(self, number: int) -> Iterator[EntryColumns]:
        for block in unit_columns(self._plan, number):
            if len(block.ordinals):
                if self._holding[-1:] != [number]:
                    self._holding.append(number)
                    self._lasts.append(-1)
                self._lasts[-1] = int(block.ordinals[-1])
            yield block

    def _units_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array(self._holding, np.int64)[np.searchsorted(self._lasts, places >> INDEX_BITS)]

    def rows(self) -> Iterator[Any]:
        """Yield record batches of `_EVENTS`."""
        import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

        for keys in self.keys.portions(_EVENT_ROWS):
            yield _of_keys(keys, self._units_of(keys.places))
        events = self._collector.events()
        units = self._units_of(np.array([event.place for event in events], np.int64)).tolist()
        rows = [row for event, number in zip(events, units, strict=True) for row in _rows(event, number)]
        for number in self._units:
            # The messages are counted together, under the last unit.
            messages = self._collector.messages if number == self._units[-1] else 0
            rows.append((_UNIT, str(number).encode(), _code(-1, False, False), number, messages))
        if rows:
            kinds = [pa.int32(), pa.binary(), pa.int64(), pa.int32(), pa.int64()]
            columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, _NAMES)


def _of_keys(keys: Keys, units: NDArray[np.int64]) -> Any:
    """Return rows of `_EVENTS` for keys as a record batch."""
    import pyarrow as pa

    count = len(keys.places)
    names = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(keys.ends), pa.py_buffer(keys.names)])
    columns = [
        pa.repeat(pa.scalar(KEY, pa.int32()), count),
        names,
        pa.array(_code(keys.places, keys.over.astype(np.int64), 0)),
        pa.array(units, pa.int32()),
        pa.repeat(pa.scalar(0, pa.int64()), count),
    ]
    return pa.RecordBatch.from_arrays(columns, _NAMES)


def _second_pass(plan: CompactionJobPlan, chunk_state: ChunkState) -> Callable[[Any], Any]:
    """Return the function that writes one unit's file from its places that stay."""

    def run(table: Any) -> Any:
        import pyarrow as pa

        number = table.column("unit")[0].as_py()
        row = write_unit(plan, number, np.sort(table.column("place").to_numpy()), chunk_state)
        kinds = (pa.int32(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64())
        return pa.Table.from_pylist([row], pa.schema(list(zip(row, kinds, strict=True))))

    return run


def write_unit(
    plan: CompactionJobPlan, number: int, places: NDArray[np.int64], chunk_state: ChunkState
) -> dict[str, Any]:
    """Write what stays of a unit to a file, if anything stays; return a row of `_FILES`. ``places`` ascend."""
    name = _file_name(plan, number)
    row: dict[str, Any] = {"unit": number, "name": name, "digest": "", "entries": 0, "bytes": 0, "messages": 0}
    stays = compacted_entries(unit_columns(plan, number), places, chunk_state, retain_keyless=plan.retain_keyless)
    some = next(stays, None)
    if some is None:
        return row
    draft = object_store_at(plan.url).draft(name)
    try:
        writer = LedgerWriter(draft.target, plan.topic, number, 0)
        try:
            while some is not None:
                # an entry of a view does not begin with metadata that has a time
                times = np.full(len(some.sizes), NO_TIME, np.int64)
                writer.add_columns(some.data, some.sizes, some.counts, times)
                row["messages"] += some.messages
                some = next(stays, None)
            facts = writer.close()
        except BaseException:
            writer.abandon()
            raise
        try:
            draft.commit()
        except FileExistsError:
            draft.abandon()  # an attempt before this one wrote the same
    except BaseException:
        draft.abandon()
        raise
    return {**row, "digest": facts.digest, "entries": facts.entries, "bytes": facts.bytes}


def unit_columns(plan: CompactionJobPlan, number: int) -> Iterator[EntryColumns]:
    """Yield a unit's entries. Raises DataLossError if one cannot be read."""
    unit = plan.units[number]
    base = unit.piece.base if unit.piece is not None else unit.copy.base if unit.copy is not None else 0
    for block in entries(Access(), unit):
        if isinstance(block, Missing):
            raise DataLossError(f"{unit.topic}: {block}")
        yield of_view(block) if number < plan.from_view else of_topic(block, base)


def _file_name(plan: CompactionJobPlan, number: int) -> str:
    return f"{plan.folder}/{number:06d}.parquet"


def _hand_over(plan: CompactionJobPlan, files: Sequence[dict[str, Any]], removed: int) -> None:
    """Hand the files to the broker; return when it has made them the view."""
    path = f"{path_of(plan.topic)}/compaction"
    given = [{name: row[name] for name in ("unit", "name", "digest", "entries", "bytes")} for row in files]
    body = {"generation": plan.generation, "horizon": plan.horizon, "removed": removed, "files": given}
    plan.rest.ask("POST", f"{path}/view", body)
    while (answer := plan.rest.ask("GET", path))["status"] == "RUNNING":
        time.sleep(_POLL_SECONDS)
    if answer["status"] != "SUCCESS":
        raise ConflictError(f"{plan.topic}: the broker did not take the result over: {answer['lastError']}")
