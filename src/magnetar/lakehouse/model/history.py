"""Commits of a table of any kind, and the mapping between versions and positions of topics; pure.

Each commit of a stream records how far the query had read its topics when it was made (`positions`: the end offsets of
the micro-batch, from Spark's offset log, see `query_checkpoint`). So the rows of a table up to a version are what the
query makes of the topics up to these positions, and rows between two versions come from the range between theirs:

    {"persistent://public/default/flights-partition-0": "12:400:0", ...}

which is what the options ``startingOffsets`` and ``endingOffsets`` of ``format("pulsar")`` take. Compaction, merges of
other writers and schema changes say nothing about topics; they stand at the positions of the commits before them.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.offsets import parse_time

Positions = dict[str, str]
"""Topic-partition to ``ledger:entry:batch``: the place before the first message that was not read."""


class Commit(NamedTuple):
    """One version of a table, as its history lists it."""

    version: int
    time_ms: int
    operation: str
    app: str | None = None
    """The query's id, or txnAppId."""
    batch: int | None = None
    """The micro-batch, or txnVersion."""
    positions: Positions | None = None
    since: Positions | None = None
    """Where the micro-batch began, if it was not the first."""
    rows: int | None = None
    files: int | None = None


class Note(NamedTuple):
    """The origin of a commit, which every kind of table keeps with it."""

    app: str | None = None
    batch: int | None = None
    positions: Positions | None = None
    since: Positions | None = None
    rows: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the note as a dictionary, without what is unknown."""
        return {key: value for key, value in self._asdict().items() if value is not None}

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Note:
        return Note(**{key: given[key] for key in Note._fields if key in given})


def newest(commits: Sequence[Commit], version: int | None, at: str | None) -> int:
    """Return the given version, or the last one committed by the time ``at``, or the last of all."""
    if not commits:
        raise InvalidValueError("the table has no commits yet")
    versions = sorted(commit.version for commit in commits)
    if version is not None and at is not None:
        raise InvalidValueError("give either a version or a timestamp")
    if at is not None:
        moment = parse_time(at)
        before = [commit.version for commit in commits if commit.time_ms <= moment]
        if not before:
            first = dt.datetime.fromtimestamp(min(c.time_ms for c in commits) / 1000, dt.UTC)
            raise InvalidValueError(f"the table's history begins at {first.isoformat()}, after {at}")
        return max(before)
    if version is None:
        return versions[-1]
    if not versions[0] <= version <= versions[-1]:
        raise InvalidValueError(
            f"there is no version {version}; the table's history has {versions[0]} to {versions[-1]}"
        )
    return version


def positions_at(commits: Iterable[Commit], version: int, query: str | None = None) -> Positions:
    """Return how far the topics are in the table at ``version``.

    Several queries may write one table. Two that read the same topic-partition cannot be added up, and the error says
    to name one (``query``).
    """
    latest: dict[str, Commit] = {}
    for commit in sorted(commits, key=lambda one: one.version):
        if commit.version <= version and commit.app is not None and commit.positions is not None:
            latest[commit.app] = commit
    if query is not None:
        if query not in latest:
            raise InvalidValueError(f"no commit up to version {version} is of query {query}{_known(latest)}")
        return dict(latest[query].positions or {})
    if not latest:
        raise InvalidValueError(
            f"no commit up to version {version} says how far its topics were read: they are not of a stream of "
            "format('pulsar'), or the history is cut off before"
        )
    found: Positions = {}
    for commit in latest.values():
        for topic, place in (commit.positions or {}).items():
            if topic in found and found[topic] != place:
                raise InvalidValueError(f"several queries write {topic} into the table{_known(latest)}: name one")
            found[topic] = place
    return found


def version_holding(commits: Iterable[Commit], topic: str, place: ReadPosition, query: str | None = None) -> int | None:
    """Return the first version that holds the message at ``place`` of a topic-partition; None if no version does
    yet."""
    for commit in sorted(commits, key=lambda one: one.version):
        if commit.positions is None or (query is not None and commit.app != query):
            continue
        end = commit.positions.get(topic)
        if end is not None and ReadPosition.parse(end) > place:
            return commit.version
    return None


def _known(latest: Mapping[str, Commit]) -> str:
    return f"; there are {', '.join(sorted(latest))}" if latest else ""


def as_text(value: Mapping[str, Any]) -> str:
    """Return canonical JSON, the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
