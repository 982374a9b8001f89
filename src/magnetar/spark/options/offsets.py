"""Offsets: as users write them (`At`), and as Spark keeps them in a checkpoint (JSON, versioned, half-open).

A user says for each topic-partition: earliest, latest, ``ledger:entry[:batch]``, a publish time (``@`` and milliseconds
since 1970 or ISO 8601), or a number, which is the message's index. Only a broker can make a place of most of these.

    {"v": 1, "p": {"persistent://public/default/t-partition-0": "12:400:0", ...}, "n": [0, 0]}

``n``, in the ends of micro-batches, is minPartitions and maxPartitions when it was planned: a repetition is cut into
tasks as the first attempt was, whatever the options say by then.

Each value is a place, the point before the next message to read (`client.place`), perhaps followed by ``@index`` (the
broker's running number of that message), which this version accepts and does not need. Keys are sorted, so equal
offsets are equal texts; Spark compares texts to see whether there is something new.

The end of a micro-batch may say more, under "c": places where the ranges that end there are cut into tasks. Only the
driver that made it could ask the broker for them, and who plans the micro-batch again must cut alike.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from magnetar.client.read_position import Place
from magnetar.model.errors import InvalidValueError

VERSION: Final = 1


class Word(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"


class Moment(NamedTuple):
    """The first message that was published then or later."""

    ms: int


class Index(NamedTuple):
    """The message with that running number of the topic."""

    number: int


At = Word | Moment | Index | Place


def parse_at(given: object) -> At:
    """One offset in the user's JSON, or a word alone; InvalidValueError says what can be written."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return Index(given)
    text = given.strip() if isinstance(given, str) else ""
    if text.lower() in (word.value for word in Word):
        return Word(text.lower())
    if text.isdecimal():
        # Options are texts, so a number in one is a text as well.
        return Index(int(text))
    if text.startswith("@"):
        return Moment(parse_time(text[1:]))
    if ":" in text:
        return Place.parse(text)
    raise InvalidValueError(
        f"{given!r} is no offset: write earliest, latest, ledger:entry, ledger:entry:batch, @time (milliseconds since "
        "1970, or as 2013-01-01T10:15:00Z), or a message index as a number"
    )


def parse_time(text: str) -> int:
    """Milliseconds since 1970, from such a number or ISO 8601; without a zone it is UTC."""
    if text.isdecimal():
        return int(text)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(
            f"{text!r} is no time: write milliseconds since 1970, or as 2013-01-01T10:15:00Z"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(milliseconds=1))


Cuts = Mapping[str, Sequence[Place]]
"""Per topic-partition, in order."""


def to_json(
    places: Mapping[str, Place], tasks: tuple[int, int] | None = None, cuts: Cuts | None = None
) -> dict[str, Any]:
    """What Spark stores; ``tasks`` are the least and the most that are wanted, 0 is "no limit"."""
    found: dict[str, Any] = {"v": VERSION, "p": {topic: str(places[topic]) for topic in sorted(places)}}
    if tasks is not None:
        found["n"] = list(tasks)
    if cuts:
        found["c"] = {topic: [str(place) for place in cuts[topic]] for topic in sorted(cuts)}
    return found


def tasks_of(offset: Mapping[str, Any], otherwise: tuple[int, int]) -> tuple[int, int]:
    """The ``tasks`` that went into an offset."""
    least, most = offset.get("n", otherwise)
    return int(least), int(most)


def from_json(offset: Mapping[str, Any]) -> dict[str, Place]:
    """What Spark gives back; InvalidValueError for a checkpoint of another source or a later version."""
    version, places = offset.get("v"), offset.get("p")
    if version != VERSION or not isinstance(places, dict):
        raise InvalidValueError(
            f"the checkpoint holds offsets of version {version!r}, this is version {VERSION}: it was written by "
            "another source or a later release; use that release, or a new checkpoint"
        )
    return {topic: Place.parse(str(text).partition("@")[0]) for topic, text in places.items()}


def cuts_of(offset: Mapping[str, Any]) -> dict[str, list[Place]]:
    """Where the micro-batch that ends at this offset is cut; nothing if it does not say."""
    return {topic: [Place.parse(text) for text in texts] for topic, texts in offset.get("c", {}).items()}
