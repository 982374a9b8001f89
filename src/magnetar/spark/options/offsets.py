"""Offsets as users write them (`OffsetSpec`).

A user gives for each topic-partition: earliest, latest, ``ledger:entry[:batch]``, a publish time (``@`` and
milliseconds since 1970 or ISO 8601), or a number, which is the message's index. Only a broker can make a read position
of most of these.
"""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import NamedTuple

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError


class NamedOffset(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"


class TimeOffset(NamedTuple):
    """An offset given as a publish time: the first message that was published then or later."""

    ms: int


class IndexOffset(NamedTuple):
    """An offset given as the broker's running number of a message."""

    number: int


OffsetSpec = NamedOffset | TimeOffset | IndexOffset | ReadPosition


def parse_offset(given: object) -> OffsetSpec:
    """Parse one offset of the user's JSON, or a word alone; InvalidValueError says what can be written."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return IndexOffset(given)
    text = given.strip() if isinstance(given, str) else ""
    if text.lower() in (word.value for word in NamedOffset):
        return NamedOffset(text.lower())
    if text.isdecimal():
        # Options are texts, so a number in one is a text as well.
        return IndexOffset(int(text))
    if text.startswith("@"):
        return TimeOffset(parse_time(text[1:]))
    if ":" in text:
        return ReadPosition.parse(text)
    raise InvalidValueError(
        f"{given!r} is no offset: write earliest, latest, ledger:entry, ledger:entry:batch, @time (milliseconds since "
        "1970, or as 2013-01-01T10:15:00Z), or a message index as a number"
    )


def parse_time(text: str) -> int:
    """Return milliseconds since 1970, from such a number or ISO 8601; without a zone it is UTC."""
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
