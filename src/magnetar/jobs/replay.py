"""``magnetar jobs replay``: a subscription's backlog or a whole topic is published to another topic, exactly once.

What to read is decided when a replay of that name first runs, and is written to a plan file: for each
partition the ranges that the subscription has not acknowledged, ``[mark-delete, end)`` without what was acknowledged
singly, from the broker's internalStats; without a subscription the whole topic up to its end. Every later run of that
name reads exactly the plan. Reading and filtering are map-only, so each run gives the same rows in the same tasks, and
the sink's txnAppId (docs/decisions/009) makes a second run publish only what the first did not get to. The backlog
itself stays: acknowledge it or skip it when the replay is done. No subscription is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from magnetar.client.bulk.positions import last_position
from magnetar.client.read_position import START, ReadPosition
from magnetar.client.rest import Rest, path_of
from magnetar.columnar.arrow_decoder import sql_schema
from magnetar.jobs.reader.unit_reader import Access, spread_rows
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.model.names import TopicName
from magnetar.runtime.files.pipe import read_without_waiting
from magnetar.spark.durable_files import write_whole
from magnetar.spark.options.login_options import options_of
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name
from magnetar.spark.source.planning.planner import Range, tasks_of
from magnetar.spark.source.reading.read_task import read_task
from magnetar.spark.source.reading.value_schemas import value_decoder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METADATA: Final = (
    "__key", "__topic", "__publishTime", "__eventTime", "__messageProperties", "__ledgerId", "__entryId",
    "__batchIndex", "__producerName", "__sequenceId", "__orderingKey",
)  # fmt: skip
"""Columns that a filter can use, besides ``value``."""
_PUBLISHED: Final = ("value", "__key", "__eventTime", "__messageProperties", "__orderingKey")
_FORMAT: Final = 1
"""Of the plan file."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,80}")
_RANGE: Final = re.compile(r"([(\[])(-?\d+):(-?\d+)(?:\.\.|‥)(-?\d+):(-?\d+)([)\]])")


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to replay, from where to where."""

    name: str
    """Identity: two runs of one name publish once."""
    source: str
    subscription: str | None
    target: str
    condition: str | None
    """SQL over ``value`` and `METADATA`."""

    def checked(self) -> ReplayRequest:
        """Return the request with full topic names. Raises InvalidValueError."""
        if not _NAME.fullmatch(self.name):
            raise InvalidValueError(f"{self.name!r} cannot name a replay: use 1 to 80 letters, digits, '.', '_' or '-'")
        source, target = TopicName.parse(self.source).fqn, TopicName.parse(self.target).fqn
        if source == target and self.subscription is None:
            raise InvalidValueError(f"{source} cannot be replayed into itself as a whole: name a subscription")
        return ReplayRequest(self.name, source, self.subscription, target, self.condition)


def acknowledged(text: str) -> list[tuple[ReadPosition, ReadPosition]]:
    """Parse ``individuallyDeletedMessages`` of internalStats into half-open ranges of entries, ascending."""
    out = []
    for opening, ledger, entry, end_ledger, end_entry, closing in _RANGE.findall(text):
        first = ReadPosition(int(ledger), int(entry) + (1 if opening == "(" else 0))
        out.append((first, ReadPosition(int(end_ledger), int(end_entry) + (1 if closing == "]" else 0))))
    return sorted(out)


def backlog(cursor: Mapping[str, Any], end: ReadPosition) -> list[tuple[ReadPosition, ReadPosition]]:
    """Return what a cursor of internalStats has not acknowledged up to ``end``: half-open ranges, ascending."""
    ledger, _, entry = str(cursor["markDeletePosition"]).partition(":")
    at = ReadPosition(int(ledger), int(entry) + 1)
    out = []
    for first, stop in acknowledged(str(cursor.get("individuallyDeletedMessages", ""))):
        if at < first:
            out.append((at, min(first, end)))
        at = max(at, stop)
    out.append((at, end))
    return [(start, stop) for start, stop in out if start < stop]


def make_plan(access: Access, rest: Rest | None, wanted: ReplayRequest) -> list[Range]:
    """Return the ranges to read as they are now. Raises NotFoundError, ClientError, RestRefusedError."""
    ranges: list[Range] = []
    with access.lookup() as lookup:
        for partition in topic_partitions(lookup, topics_by_name([wanted.source]), create=False):
            end = last_position(lookup, partition)
            if wanted.subscription is None:
                ranges.append(Range(partition, START, end))
                continue
            if rest is None:
                raise InvalidValueError(
                    "the backlog of a subscription is asked for over REST: give --admin-url http://…"
                )
            cursors = rest.ask("GET", f"{path_of(partition)}/internalStats")["cursors"]
            if wanted.subscription not in cursors:
                known = ", ".join(sorted(cursors)) or "none"
                raise NotFoundError(f"{partition} has no subscription {wanted.subscription!r}; it has {known}")
            ranges += [Range(partition, *one) for one in backlog(cursors[wanted.subscription], end)]
    return [one for one in ranges if one.start < one.end]


def load_or_make(path: Path, wanted: ReplayRequest, make: Any) -> tuple[list[Range], bool]:
    """Return the plan in that file, and whether it was there; if not, ``make()`` makes it and it is written."""
    if path.exists():
        try:
            stored = json.loads(read_without_waiting(path))
            _check_format(stored, path)
            request = ReplayRequest(**stored["request"])
            ranges = [Range(topic, ReadPosition(*start), ReadPosition(*end)) for topic, start, end in stored["ranges"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidValueError(f"{path} is no plan of a replay: {error}; give another file or remove it") from None
        for field, value in asdict(wanted).items():
            if getattr(request, field) != value:
                raise InvalidValueError(
                    f"{path} is the plan of a replay whose {field} is {getattr(request, field)!r} and not {value!r}: "
                    "a run with other rows would not be the same replay; use another --id"
                )
        return ranges, True
    ranges = list(make())
    write_whole(path, json.dumps({"format": _FORMAT, "request": asdict(wanted), "ranges": ranges}))
    return ranges, False


def _check_format(stored: dict[str, Any], path: Path) -> None:
    """Raise InvalidValueError for a plan of a later release; the first plans did not say their format."""
    said = stored.get("format", _FORMAT)
    if isinstance(said, bool) or not isinstance(said, int) or said < 1:
        raise ValueError(f"its format is {said!r}")
    if said > _FORMAT:
        raise InvalidValueError(
            f"{path} is of format {said}, this release knows {_FORMAT}: use a later release of magnetar"
        )


def replay(spark: SparkSession, access: Access, wanted: ReplayRequest, ranges: Sequence[Range]) -> int:
    """Publish what the plan names and the filter lets through; return the number of messages, known ones included."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    given = {"service.url": access.url or "", "topic": wanted.source, "metadata": ",".join(METADATA)}
    options = source_options(given | options_of(access.login))
    columns = tuple(name for name in METADATA)
    schema = sql_schema(value_decoder(options).schema, columns)
    tasks = tasks_of(list(ranges))

    def rows(task: Any) -> Iterator[Any]:
        order = ["value", *columns]
        for batch in read_task(options, task):
            yield batch.select(order)

    frame = spread_rows(spark, tasks, rows, schema)
    if wanted.condition is not None:
        try:
            frame = frame.where(wanted.condition)
        except (AnalysisException, ParseException) as error:
            text = str(error).splitlines()[0]
            names = ", ".join(("value", *columns))
            raise InvalidValueError(
                f"the filter {wanted.condition!r} cannot be used: {text}; columns: {names}"
            ) from None
    seen = Observation("replay")
    out = frame.select(*_PUBLISHED).observe(seen, f.count(f.lit(1)).alias("messages"))
    out.write.format("pulsar").options(**sink_options_of(access, wanted)).mode("append").save()
    return int(seen.get["messages"])


def sink_options_of(access: Access, wanted: ReplayRequest) -> dict[str, str]:
    """Return how the target is written: once for all runs of a name, and in chunks what came in chunks."""
    return {
        "service.url": access.url or "",
        "topic": wanted.target,
        **options_of(access.login),
        "txnAppId": f"replay-{wanted.name}",
        "txnVersion": "0",
        "pulsar.producer.chunkingEnabled": "true",
    }
