"""What a job reads, cut into units that tasks can read on their own; planned on the driver.

A topic's sealed ledgers are read from the broker's directory if there is one (`segment_reader`); its open ledger, and
everything where no directory is given (another machine, Apache Pulsar, no right to read it), by protocol (`client`). A
unit is a part of one ledger, of a few dozen megabytes, so that a task takes neither milliseconds nor minutes; small
ones are grouped by `tasks_of`. Units are a function of what the directory and the broker said once: a task that Spark
runs a second time reads the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from magnetar.client.bulk.ledger_ranges import split_by_ledger
from magnetar.client.bulk.positions import first_position, last_position
from magnetar.client.login import UNKNOWN, ClientLogin
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.jobs.reader.topic_ledgers import (
    CopiedLedger,
    DirectoryContents,
    SegmentPiece,
    TopicLedgers,
    read_directory,
)
from magnetar.model.errors import InvalidValueError, TopicNotFoundError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.planning.planner import tasks_of as tasks_of_ranges

UNIT_BYTES: Final = 32 << 20
"""A unit is not larger, in bytes as stored, unless one extent is."""
TASK_BYTES: Final = 96 << 20
"""Units are grouped up to this size: a Spark task costs 12 to 50 ms by itself."""


@dataclass(frozen=True, slots=True)
class Access:
    """How the entries of topics are reached; it is pickled and sent to workers."""

    url: str | None = None
    """pulsar://host:port; None to read only the directory."""
    directory: str | None = None
    """A broker's data directory; None to read everything by protocol."""
    login: ClientLogin = UNKNOWN
    operation_timeout: float = 30.0
    poll_timeout: float = 120.0

    def lookup(self) -> Lookup:
        """Open connections to the broker; the caller closes them. Raises InvalidValueError without a URL."""
        if self.url is None:
            raise InvalidValueError("this needs a broker: give its address, for instance pulsar://localhost:6650")
        return self.login.lookup(self.url, self.operation_timeout)


class Unit(NamedTuple):
    """The messages ``[start, stop)`` of one topic or partition, within one ledger if it is read directly."""

    topic: str
    start: ReadPosition
    stop: ReadPosition
    size: int
    """Bytes as stored; 0 if unknown."""
    ledgers: str = ""
    """Directory of the segments, if it is read directly."""
    piece: SegmentPiece | None = None
    """Where the entries lie; None to read by protocol."""
    lost: str = ""
    """Why none of it can be read, if that is known already."""
    copy: CopiedLedger | None = None
    """The copy of an offloaded ledger that holds it, if one does."""


def units(
    access: Access,
    topic: str,
    start: Mapping[str, ReadPosition] | ReadPosition = START,
    stop: Mapping[str, ReadPosition] | ReadPosition | None = None,
    *,
    least: int = 0,
) -> list[Unit]:
    """Return all of a topic, or from ``start`` to ``stop`` (places, or one for each partition), as units in order.

    Without ``stop`` the end is where the topic ends now. Ranges by protocol are split until there are ``least``
    units. Raises TopicNotFoundError, InvalidValueError, ClientError, PersistenceError.
    """
    name = TopicName.parse(topic).fqn
    directory = None if access.directory is None else read_directory(Path(access.directory))
    if access.url is None:
        if directory is None:
            raise InvalidValueError(
                "neither a broker's address nor a data directory was given: there is nothing to read"
            )
        return list(_direct_only(directory, name, start, stop))
    with access.lookup() as lookup:
        found: list[Unit] = []
        for partition in topic_partitions(lookup, topics_by_name([name]), create=False):
            first = _of(start, partition) or START
            end = _of(stop, partition) or last_position(lookup, partition)
            log = None if directory is None else directory.logs.get(partition)
            if log is not None and directory is not None:
                found += direct_units(directory, log, first, end, log.sealed_end)
                border = log.position(log.sealed_end)
                first = max(first, ReadPosition(border.ledger, border.entry))
            found += _by_protocol(lookup, partition, first, end, least)
    return found


def tasks_of(found: list[Unit], least: int = 1) -> list[list[Unit]]:
    """Group units in order, so that a task has about `TASK_BYTES`, and there are ``least`` tasks if possible."""
    total = sum(unit.size for unit in found)
    target = max(min(TASK_BYTES, total // max(least, 1)), 1)
    tasks: list[list[Unit]] = []
    size = target
    for unit in found:
        alone = unit.piece is None and unit.copy is None and not unit.lost
        if alone or size >= target or size + unit.size // 2 > target:
            tasks.append([])
            size = 0
        tasks[-1].append(unit)
        size = target if alone else size + unit.size
    return tasks


def _of(places: Mapping[str, ReadPosition] | ReadPosition | None, partition: str) -> ReadPosition | None:
    return places if places is None or isinstance(places, ReadPosition) else places.get(partition)


def _direct_only(
    directory: DirectoryContents,
    name: str,
    start: Mapping[str, ReadPosition] | ReadPosition,
    stop: Mapping[str, ReadPosition] | ReadPosition | None,
) -> Iterator[Unit]:
    logs = directory.partitions(name)
    if not logs:
        known = sorted({TopicName.parse(one).parent.fqn for one in directory.logs if one.startswith("persistent://")})
        near = difflib.get_close_matches(name, known, 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known[:10]) or 'none'}"
        raise TopicNotFoundError(f"{directory.path} has no topic {name}; {hint}")
    for log in logs:
        yield from direct_units(directory, log, _of(start, log.name) or START, _of(stop, log.name), log.end)


def direct_units(
    directory: DirectoryContents, log: TopicLedgers, start: ReadPosition, stop: ReadPosition | None, border: int
) -> Iterator[Unit]:
    """Yield units of what lies in segments, or in copies of ledgers, below the ordinal ``border``."""
    first = log.ordinal(Position(start.ledger, start.entry))
    end = border
    if stop is not None:
        inside = Position(stop.ledger, stop.entry + (1 if stop.batch else 0))
        end = min(border, log.ordinal(inside))
    at = first
    for piece in log.pieces:
        if piece.stop <= first or piece.first >= end:
            continue
        begin = max(piece.first, first)
        if begin > at:
            yield from _outside_segments(log, at, begin, start, stop)
        at = min(piece.stop, end)
        yield from _parts(directory, log, piece._replace(first=begin, stop=at), start, stop)
    if at < end:
        yield from _outside_segments(log, at, end, start, stop)


def _parts(
    directory: DirectoryContents, log: TopicLedgers, piece: SegmentPiece, start: ReadPosition, stop: ReadPosition | None
) -> Iterator[Unit]:
    """Cut a piece into units, by its entries' average size."""
    count = piece.stop - piece.first
    parts = min(-(-piece.size // UNIT_BYTES), count)
    for number in range(parts):
        begin, end = (piece.first + count * (number + one) // parts for one in (0, 1))
        part = piece._replace(
            first=begin,
            stop=end,
            size=piece.size * (end - begin) // count,
            hidden=tuple(one for one in piece.hidden if begin <= one < end),
        )
        from_, to = ReadPosition(piece.ledger, begin - piece.base), ReadPosition(piece.ledger, end - piece.base)
        # a place inside a batch keeps its number of the message
        from_ = start if start[:2] == from_[:2] else from_
        to = stop if stop is not None and stop.batch and (stop.ledger, stop.entry + 1) == to[:2] else to
        yield Unit(log.name, from_, to, part.size, str(directory.path), part)


def _outside_segments(
    log: TopicLedgers, first: int, end: int, start: ReadPosition, stop: ReadPosition | None
) -> Iterator[Unit]:
    """Yield units of entries that no segment has: they are in copies of their ledgers, or lost."""
    at = first
    for copy in log.copies:
        begin, until = max(copy.first, first), min(copy.stop, end)
        if begin >= until:
            continue
        yield from _lost(log, at, begin)
        from_, to = ReadPosition(copy.ledger, begin - copy.base), ReadPosition(copy.ledger, until - copy.base)
        from_ = start if start[:2] == from_[:2] else from_
        to = stop if stop is not None and stop.batch and (stop.ledger, stop.entry + 1) == to[:2] else to
        size = copy.offload.bytes * (until - begin) // copy.offload.entries
        yield Unit(log.name, from_, to, size, copy=copy._replace(first=begin, stop=until))
        at = until
    yield from _lost(log, at, end)


def _lost(log: TopicLedgers, first: int, end: int) -> Iterator[Unit]:
    """Yield a unit per ledger for entries that the log counts and no segment has."""
    for ledger in log.ledgers:
        begin, stop = max(first, ledger.base), min(end, ledger.stop)
        if begin < stop:
            places = ReadPosition(ledger.id, begin - ledger.base), ReadPosition(ledger.id, stop - ledger.base)
            yield Unit(log.name, *places, 0, lost="no segment holds them; magnetar verify names what is damaged")


def _by_protocol(lookup: Lookup, topic: str, start: ReadPosition, stop: ReadPosition, least: int) -> list[Unit]:
    if start == START:
        start = first_position(lookup, topic)
    if start >= stop:
        return []
    ranges = [Range(topic, *part) for part in split_by_ledger(lookup, topic, start, stop)] if least > 1 else []
    ranges = ranges or [Range(topic, start, stop)]
    return [Unit(topic, one.start, one.end, 0) for task in tasks_of_ranges(ranges, least=least) for one in task]
