"""Receipts of duplicates in their turn: after what the producer sent before them, before what it sent later.

Clients take receipts in the order in which they sent: the official ones count one that comes too early as none at all,
or end the connection. A duplicate is known at once, the entries around it are decided by the disk; so with something
in flight it waits for the last entry before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.broker.topic.publish.producer import PendingEntry, ProducerConnection
from magnetar.model.errors import PersistenceError


class OrderedReceipts:
    """Wraps the connection of a producer whose messages are deduplicated."""

    def __init__(self, connection: ProducerConnection) -> None:
        self._connection = connection
        self._last: PendingEntry | None = None
        """The last entry in flight."""
        self._held: list[tuple[PendingEntry, PendingEntry]] = []
        """Pairs of an entry in flight and a duplicate that came after it, in order."""

    @property
    def behind(self) -> ProducerConnection:
        """The producer's own."""
        return self._connection

    @property
    def session(self) -> object:
        """See :class:`ProducerConnection`."""
        return self._connection.session

    def appended(self, entry: PendingEntry) -> None:
        """Note that ``entry`` is the last one in flight."""
        self._last = entry

    def duplicate(self, again: PendingEntry) -> None:
        """Send a receipt with ids -1 when it is its turn (rule 3.4.3)."""
        if self._last is None:
            self._connection.receipts(-1, -1, (again,))
        else:
            self._held.append((self._last, again))

    def receipts(self, ledger: int, first_entry: int, results: Sequence[PendingEntry]) -> None:
        """See :class:`ProducerConnection`."""
        last = self._last
        # mostly the last one; not if deduplication was switched off meanwhile and more was sent
        if last is not None and any(result is last for result in reversed(results)):
            self._last = None
        if not self._held:
            self._connection.receipts(ledger, first_entry, results)
            return
        start = 0
        for at, result in enumerate(results, 1):
            if self._held and self._held[0][0] is result:
                self._connection.receipts(ledger, first_entry + start, results[start:at])
                start = at
                while self._held and self._held[0][0] is result:
                    self._connection.receipts(-1, -1, (self._held.pop(0)[1],))
        if start < len(results):
            self._connection.receipts(ledger, first_entry + start, results[start:])

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        """See :class:`ProducerConnection`. After a failed write the producer is closed, and with it who is held."""
        self._connection.failed(results, error)

    def dropped(self, count: int) -> None:
        """See :class:`ProducerConnection`. The producer is closed, so who is held gets no receipt either."""
        self._drop()
        self._connection.dropped(count)

    def unstored(self, results: Sequence[PendingEntry], *, dropped: bool) -> None:
        """See :class:`ProducerConnection`."""
        self._connection.unstored(results, dropped=dropped)

    def close(self) -> None:
        """See :class:`ProducerConnection`."""
        self._drop()
        self._connection.close()

    def fence(self) -> None:
        """See :class:`ProducerConnection`."""
        self._drop()
        self._connection.fence()

    def _drop(self) -> None:
        held, self._held = self._held, []
        if held:
            self._connection.dropped(len(held))
