"""The dispatch rules of transactions on a subscription (rules 9.10, 9.12).

:class:`ReadCommittedRule` stands at every subscription of a topic that took part in a transaction: nothing from the
first entry of the oldest open transaction on is read, aborted entries and markers are dead. :class:`PendingAckRule`
stands at one subscription while acknowledgements on it are pending, and what consumers are sent of a batch that is
pending in part comes from :class:`UnreservedIndexes`.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.broker.topic.ports import SubscriptionCursor
from magnetar.transactions.buffer import TransactionBuffer
from magnetar.transactions.coordinator import txn_text
from magnetar.transactions.pending_acks import PendingAcks


class ReadCommittedRule(DispatchRule):
    """READ_COMMITTED, by what is durable of a topic's transactions."""

    def __init__(self, buffer: TransactionBuffer) -> None:
        self._buffer = buffer

    @property
    def why(self) -> str:  # type: ignore[override]  # a constant there
        """Which transaction it is that holds them back."""
        oldest = self._buffer.oldest()
        return f"transaction {txn_text(oldest)} is open and began there" if oldest is not None else ""

    @override
    def readable_end(self, end: int) -> int:
        limit = self._buffer.limit
        return end if limit is None else min(limit, end)

    @override
    def next_open(self, start: int, stop: int) -> int:
        return min(self._buffer.next_shown(start), stop)

    @override
    def next_closed(self, start: int, stop: int) -> int:
        return self._buffer.next_hidden(start, stop)

    @override
    def dead(self, start: int, stop: int) -> Sequence[int]:
        return self._buffer.hidden_in(start, stop)

    @override
    def last_living(self, start: int, stop: int) -> int:
        return self._buffer.last_shown(start, stop)


class PendingAckRule(DispatchRule):
    """Entries that open transactions have acknowledged, whole or by now in all their parts."""

    def __init__(self, pending: PendingAcks, cursor: SubscriptionCursor) -> None:
        self._pending = pending
        self._cursor = cursor

    def _reserved_in_parts(self, ordinal: int) -> bool:
        part = self._pending.parts.get(ordinal)
        return part is not None and not part.left_of(self._cursor.remaining_indexes(ordinal))

    @override
    def next_open(self, start: int, stop: int) -> int:
        whole, at = self._pending.whole, -1
        while start < stop and at != start:
            at = start
            start = whole.next_missing(start)
            if start < stop and self._reserved_in_parts(start):
                start += 1
        return min(start, stop)

    @override
    def next_closed(self, start: int, stop: int) -> int:
        whole = self._pending.whole.within(start, stop)
        if whole:
            stop = whole[0]
        parts = self._pending.parts
        if parts:
            # a run is short, and a transaction may have parts of very many batches
            near = range(start, stop) if stop - start < len(parts) else sorted(parts)
            stop = next((o for o in near if start <= o < stop and o in parts and self._reserved_in_parts(o)), stop)
        return stop


class UnreservedIndexes:
    """What neither the cursor nor a transaction has of a batch: the ack set of a MESSAGE (rule 5.7.8)."""

    def __init__(self, pending: PendingAcks, cursor: SubscriptionCursor) -> None:
        self._pending = pending
        self._cursor = cursor

    @property
    def has_partial_batches(self) -> bool:
        """False: there is nothing to ask for."""
        return self._cursor.has_partial_batches or bool(self._pending.parts)

    def remaining_indexes(self, ordinal: int) -> tuple[int, ...]:
        """The ack set of what is left of a batch, as the cursor gives it."""
        words = self._cursor.remaining_indexes(ordinal)
        part = self._pending.parts.get(ordinal)
        return words if part is None else part.left_of(words)
