"""A read position in a topic's log: the point just before a message.

Ranges are half-open, so the end of one range is the start of the next. A position need not be where a message is:
``(ledger, entry + 1, 0)`` is after an entry even if the next one is in another ledger. Positions order as the log does.
Text form: ``ledger:entry:batch``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import MessageIdData


class ReadPosition(NamedTuple):
    """The point before message ``batch`` (from 0) of an entry; a single message is its entry's message 0."""

    ledger: int
    entry: int
    batch: int = 0

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}:{self.batch}"

    @staticmethod
    def parse(text: str) -> ReadPosition:
        """Parse ``ledger:entry`` or ``ledger:entry:batch``."""
        parts = text.split(":")
        try:
            numbers = [int(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3) or min(numbers) < -1:
            raise InvalidValueError(f"{text!r} is no position in a topic; write ledger:entry or ledger:entry:batch")
        position = ReadPosition(*numbers)
        return (
            START
            if position.ledger < 0
            else position._replace(entry=max(position.entry, 0), batch=max(position.batch, 0))
        )


START: Final = ReadPosition(-1, 0, 0)
"""Before everything that exists, and the end of an empty topic."""


def after_entry(message_id: MessageIdData) -> ReadPosition:
    """Return the position after the entry that a broker named; START if it named none (ledger -1)."""
    return ReadPosition(message_id.ledger, message_id.entry + 1) if message_id.ledger >= 0 else START
