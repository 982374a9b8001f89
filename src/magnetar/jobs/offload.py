"""``magnetar jobs offload``: many sealed ledgers are copied to the ``offloadUrl`` by Spark (docs/offload.md).

Tasks read the ledgers straight from the broker's directory, write the copies and ask the broker to adopt them.

The broker says which ledgers have no copy, and it alone records copies: it compares each object with its own
entries first, so nothing that goes wrong here can cost a message. A ledger is the unit of work; a
task that Spark runs again finds the object that its predecessor finished and has it adopted. What the broker decides
against is deleted. A job that is killed may leave objects that no ledger names; they carry its number.
"""

from __future__ import annotations

import pickle
import secrets
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magnetar.client.rest import Rest, RestRefusedError, path_of
from magnetar.jobs.reader.ledger_copies import write_copy
from magnetar.jobs.reader.topic_ledgers import LedgerInfo, SegmentPiece, TopicLedgers, read_directory
from magnetar.model.errors import InvalidValueError, TopicNotFoundError
from magnetar.model.names import TopicName
from magnetar.offload.object_store import folder_of, object_store_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA: Final = (
    "topic string, ledger bigint, entries bigint, bytes bigint, size bigint, seconds double, refused string"
)
_TASK_BYTES: Final = 64 << 20
_DECIDED: Final = (400, 404, 409, 412)
"""HTTP statuses with which the broker says that it does not record an object."""


class CopyTask(NamedTuple):
    """One ledger to copy; it is pickled and sent to a worker."""

    rest: Rest
    topic: str
    ledgers: str
    """Directory of the segments."""
    info: LedgerInfo
    pieces: tuple[SegmentPiece, ...]
    url: str
    """The object store, as the workers reach it."""
    name: str
    """Name of the object."""


class CopyOutcome(NamedTuple):
    """The result for one ledger; its fields are the columns of the command's table."""

    topic: str
    ledger: int
    entries: int
    bytes: int
    size: int
    """Size of the object, bytes."""
    seconds: float
    """Duration of its task, including the broker's check."""
    refused: str
    """Why there is no copy; empty if there is one."""


def plan(
    rest: Rest, directory: Path, topics: Sequence[str], to: str | None = None
) -> tuple[list[CopyTask], list[CopyOutcome]]:
    """Return the ledgers to copy, and those that cannot be copied now with the reason.

    ``to``: the broker's ``offloadUrl`` as this machine and the workers reach it, if that differs. Raises RefusedError,
    NotAvailableError, InvalidValueError, TopicNotFoundError.
    """
    found = read_directory(directory)
    job = secrets.token_hex(8)
    work: list[CopyTask] = []
    left: list[CopyOutcome] = []
    for topic in topics:
        logs = found.partitions(TopicName.parse(topic).fqn)
        if not logs:
            raise TopicNotFoundError(f"{directory} has no topic {topic}")
        for log in logs:
            answer = rest.ask("GET", f"{path_of(log.name)}/offload/ledgers")
            url = to or answer["url"]
            if not answer["url"]:
                raise InvalidValueError("the broker has no place to offload to: start it with offloadUrl")
            if answer["log"] != log.id:
                raise InvalidValueError(
                    f"{directory} is not the directory of the broker at {rest.url}: its {log.name} is another one"
                )
            object_store_at(url)
            for one in answer["ledgers"]:
                if one["copy"] is not None or one is answer["ledgers"][-1]:
                    continue
                reason = one["refused"] or _incomplete(log, one["ledgerId"])
                if reason:
                    left.append(CopyOutcome(log.name, one["ledgerId"], one["entries"], one["size"], 0, 0.0, reason))
                else:
                    work.append(_copy_task(rest, log, found.path, one["ledgerId"], url, job))
    return work, left


def _incomplete(log: TopicLedgers, ledger: int) -> str:
    """Return why the snapshot of the directory does not hold the whole ledger; empty if it does."""
    info = next((one for one in log.ledgers if one.id == ledger), None)
    if info is None or info is log.ledgers[-1]:
        return "it was closed a moment ago: the next run takes it"
    held = sum(piece.stop - piece.first for piece in log.pieces if piece.ledger == ledger)
    if held == info.entries:
        return ""
    if info.base + info.entries > log.end:
        return "an open transaction has written to it: the next run takes it"
    return f"its segments have {held} of {info.entries} entries; magnetar verify names what is damaged"


def _copy_task(rest: Rest, log: TopicLedgers, ledgers: Path, ledger: int, url: str, job: str) -> CopyTask:
    name = f"{folder_of(TopicName.parse(log.name))}/ledger-{ledger:016d}-{job}.parquet"
    info = next(one for one in log.ledgers if one.id == ledger)
    pieces = tuple(piece for piece in log.pieces if piece.ledger == ledger)
    return CopyTask(rest, log.name, str(ledgers), info, pieces, url, name)


def copy(work: CopyTask) -> CopyOutcome:
    """Copy one ledger, in a worker. Raises OSError or NotAvailableError where another attempt is sensible."""
    began = time.perf_counter()
    place = object_store_at(work.url)
    size = 0
    try:
        _, size = write_copy(Path(work.ledgers), work.pieces, work.info, work.topic, place, work.name)
    except FileExistsError:
        pass  # an earlier attempt wrote it, whole
    refused = ""
    try:
        answer = work.rest.ask("POST", f"{path_of(work.topic)}/offload/{work.info.id}", {"name": work.name})
        size = answer["size"]
    except RestRefusedError as error:
        refused = str(error)
        if error.http_status in _DECIDED:
            place.delete(work.name)
        else:
            # no decision was made (a proxy timed out, a token has expired): the broker may have recorded the object for
            # an earlier attempt, or be about to
            refused += f"; {work.name} is left where it is"
    info = work.info
    return CopyOutcome(work.topic, info.id, info.entries, info.bytes, size, time.perf_counter() - began, refused)


def offload(spark: SparkSession, work: Sequence[CopyTask]) -> list[CopyOutcome]:
    """Copy all ledgers in one Spark job; results are in the order of ``work``."""
    if not work:
        return []
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

    tasks: list[list[CopyTask]] = []
    size = _TASK_BYTES
    for one in work:
        if size >= _TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(one)
        size += one.info.bytes
    packed = spark.sparkContext.parallelize([(pickle.dumps(task),) for task in tasks], len(tasks))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for data in batch.column(0):
                rows = [copy(one) for one in pickle.loads(data.as_py())]
                yield pa.RecordBatch.from_pylist([row._asdict() for row in rows], schema=_arrow())

    with warnings.catch_warnings():
        # pyspark 4.3 looks for pandas here, which is not used
        warnings.simplefilter("ignore", FutureWarning)
        rows = spark.createDataFrame(packed, "task binary").mapInArrow(run, _SCHEMA).collect()
    return [CopyOutcome(*row) for row in rows]


def clear(work: Sequence[CopyTask]) -> None:
    """Delete the halves that tasks have left, once their session has ended. Whole copies stay: the broker may be about
    to adopt them."""
    for one in work:
        with suppress(OSError):  # a signal is to be answered, not this
            object_store_at(one.url).draft(one.name).abandon()


def _arrow() -> Any:
    import pyarrow as pa

    number, text = pa.int64(), pa.string()
    kinds = (text, number, number, number, number, pa.float64(), text)
    return pa.schema(list(zip(CopyOutcome._fields, kinds, strict=True)))


def planned(work: Sequence[CopyTask]) -> list[CopyOutcome]:
    """Return the results that a run would have, for ``--dry-run``."""
    return [CopyOutcome(one.topic, one.info.id, one.info.entries, one.info.bytes, 0, 0.0, "") for one in work]
