"""What of one topic was given as rows, so that no other message is acknowledged because a table says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from magnetar.client.columns.table_ids import RowRange
from magnetar.client.machines.message_queue import QueuedEntry
from magnetar.model.errors import InvalidValueError

LEDGERS_MAX: Final = 10_000
"""Ledgers that are remembered, and messages in chunks; of older ones no table is acknowledged any more."""
_KEEP: Final = "nothing of the table is acknowledged; keep the columns of the ids as receive_table has given them"
Place = tuple[int, int]


class GivenRows:
    """Of each ledger of a topic: the first and the last entry that were given, and how far into the last one."""

    def __init__(self) -> None:
        self._ledgers: dict[int, tuple[int, int, int]] = {}
        """First entry, last entry, the end of what was given of the last one."""
        self._chunks: dict[Place, tuple[Place, ...]] = {}
        """Of messages in chunks that were not acknowledged: all their places, by that of the row."""

    def add(self, entries: Iterable[QueuedEntry]) -> None:
        """Note entries, or parts of them, of which rows are given."""
        for one in entries:
            envelope = one.envelope
            ledger, entry, stop = envelope.ledger, envelope.entry, one.wanted().bit_length()
            known = self._ledgers.get(ledger)
            if known is None:
                self._ledgers[ledger] = entry, entry, stop
                if len(self._ledgers) > LEDGERS_MAX:
                    del self._ledgers[next(iter(self._ledgers))]
            elif entry >= known[1]:
                self._ledgers[ledger] = known[0], entry, max(stop, known[2]) if entry == known[1] else stop
            elif entry < known[0]:
                self._ledgers[ledger] = entry, known[1], known[2]
            if envelope.chunks:
                self._chunks[ledger, entry] = envelope.chunks
                if len(self._chunks) > LEDGERS_MAX:
                    del self._chunks[next(iter(self._chunks))]

    def places(self, one: RowRange) -> tuple[Place, ...]:
        """Return the places of a message in chunks, which is done with now; none for any other one."""
        return self._chunks.pop((one.ledger, one.entry), ()) if self._chunks else ()

    def check(self, one: RowRange, size: int | None) -> None:
        """Raise InvalidValueError for messages that were not given; ``size``: of their batch, None if not known."""
        known = self._ledgers.get(one.ledger)
        if known is None or not known[0] <= one.entry <= known[1]:
            raise InvalidValueError(
                f"message ({one.ledger},{one.entry}) is none that this consumer's receive_table has given, so {_KEEP}"
            )
        end = max(one.batch_size, 1)
        if one.entry == known[1]:
            end = min(end, known[2])
        if one.batch_size < 0 or not 0 <= one.first < one.stop <= end or size not in (None, one.batch_size):
            raise InvalidValueError(
                f"row {one.first} to {one.stop - 1} of message ({one.ledger},{one.entry}), a batch of "
                f"{one.batch_size}, are none that this consumer's receive_table has given, so {_KEEP}"
            )
