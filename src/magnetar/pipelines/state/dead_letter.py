"""The form of a dead letter: the original message with properties that say where it comes from and why. Pure.

Value, key, event time and properties are the original ones; ours are added, all beginning with `PREFIX`. A row that
failed after the first step is no message any more: its value is the row as JSON (kind ``row``), and it has a position
only if the steps carried ``__topic``, ``__ledgerId``, ``__entryId`` and ``__batchIndex`` along.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import KeyValues

PREFIX: Final = "pipeline."
MESSAGE: Final = "message"
ROW: Final = "row"
NAME: Final = f"{PREFIX}name"
KIND: Final = f"{PREFIX}kind"
CAUSE: Final = f"{PREFIX}cause"
DETAIL: Final = f"{PREFIX}detail"
PLACE: Final = f"{PREFIX}at"
TOPIC: Final = f"{PREFIX}topic"
POSITION: Final = f"{PREFIX}position"


class DeadLetter(NamedTuple):
    """What a dead letter's properties say."""

    pipeline: str
    kind: str
    cause: str
    """Name of the expectation, ``decode`` or ``marked``."""
    detail: str
    at: str
    """The source, step or sink."""
    topic: str
    """Topic-partition of the original; empty if the position was not carried."""
    position: ReadPosition
    original: KeyValues
    """Properties of the original message."""


def parse_dead_letter(properties: KeyValues) -> DeadLetter | None:
    """Parse a message's properties; None if it is not a dead letter of a pipeline."""
    ours = {name: value for name, value in properties if name.startswith(PREFIX)}
    if NAME not in ours or KIND not in ours:
        return None
    try:
        position = ReadPosition.parse(ours.get(POSITION) or "-1:-1")
    except InvalidValueError:
        position = START
    return DeadLetter(
        ours[NAME],
        ours[KIND],
        ours.get(CAUSE, ""),
        ours.get(DETAIL, ""),
        ours.get(PLACE, ""),
        ours.get(TOPIC, ""),
        position,
        tuple(pair for pair in properties if not pair[0].startswith(PREFIX)),
    )
