"""Finds where the ledgers of a topic begin and end, so that a long range can be cut into parts of known length.

The protocol has no question for this, but a reader that is placed far after the last entry of a ledger begins with the
first entry of the next one, and a reader that is placed there has its mark-delete position at the last entry of the one
before. This takes two short sessions per ledger.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.client.reader_session import ReaderSession
from magnetar.protocol import commands as c

_FAR: Final = 1 << 40
"""No ledger has so many entries."""
_SILENCE: Final = 1.0
_LEDGERS_MAX: Final = 1_000
"""Looked at; the rest of the range stays in one part."""


def split_by_ledger(
    lookup: Lookup, topic: str, start: ReadPosition, end: ReadPosition, most: int = _LEDGERS_MAX
) -> list[tuple[ReadPosition, ReadPosition]]:
    """Return ``[start, end)`` as parts that follow each other, each within one ledger as far as that can be found out.

    After ``most`` of them the rest is one part, in several ledgers.
    """
    parts: list[tuple[ReadPosition, ReadPosition]] = []
    while start.ledger < end.ledger and start.ledger >= 0 and len(parts) < most:
        following = lookup.patiently(partial(_following, lookup, topic, start.ledger))
        if following is None or following[0] >= end:
            break
        first, after = following
        stop = after if after.ledger == start.ledger else first
        if start < stop:
            parts.append((start, stop))
        start = first
    if start < end:
        parts.append((start, end))
    return parts


def _following(lookup: Lookup, topic: str, ledger: int) -> tuple[ReadPosition, ReadPosition] | None:
    """Return the first entry after a ledger, and the position after the ledger's last one; None if nothing follows."""
    with ReaderSession(lookup, topic, ReadPosition(ledger, _FAR)) as session:
        session.flow(1)
        pushes = [push for push in session.connection.receive(_SILENCE) if type(push) is c.CommandMessage]
    if not pushes or pushes[0].message_id.ledger <= ledger:
        return None
    first = ReadPosition(pushes[0].message_id.ledger, pushes[0].message_id.entry)
    with ReaderSession(lookup, topic, first) as session:
        return first, session.placed_at()
