"""What a non-persistent topic has in place of a log: entries pass through, nothing stays and nothing touches the disk.

Entries gather in a group that is delivered in the loop's next turn, or at once when it is full: so the receipts and
messages of one wake-up leave in one write per socket, and no message costs a hop of its own. Publisher and consumers
see the order of publishing.

A group that goes to very many subscriptions takes several turns of the loop (:mod:`magnetar.broker.throttling.passes`).
What comes meanwhile gathers behind it.

To the connection this looks like a log with nothing in it (``first == end == 0``) but the place 0:0 that every message
and receipt names (rules 13.3, 13.5). A connection may have ``limit`` entries more than one on their way; what goes
beyond is dropped and its receipt says -1:-1. A full group leaves at once, so only limits below the size of a group, or
several topics on one connection, ever drop anything; or a topic with very many subscriptions, behind which more than
``_HELD_BYTES_MAX`` gather as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from magnetar.broker.topic.ports import Done, EntryRun
from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.model.ids import EARLIEST, Position
from magnetar.storage.ledgers.ledger import Ledger, LedgerTable

GROUP_ENTRIES_MAX: Final = 256
_GROUP_BYTES_MAX: Final = 1 << 20
"""A few large messages fill a group as well: sockets are asked whether they take more once per group."""
_HELD_BYTES_MAX: Final = 16 << 20
"""Bytes that gather while the group before them is delivered."""


class FanOutGroup(NamedTuple):
    """Entries that are delivered together."""

    entries: list[bytes]
    counts: list[int] | None
    """Messages per entry; None: one each."""
    messages: int
    bytes: int


class InFlight:
    """Entries on their way through all non-persistent topics, by connection (rule 13.3)."""

    __slots__ = ("_entries", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: dict[object, int] = {}

    def enter(self, connection: object) -> bool:
        """One more of this connection; False: too many are on their way already."""
        entries = self._entries
        under_way = entries.get(connection, 0)
        if under_way > self.limit:
            return False
        entries[connection] = under_way + 1
        return True

    def leave(self, connection: object, count: int) -> None:
        """So many are through."""
        left = self._entries[connection] - count
        if left:
            self._entries[connection] = left
        else:
            del self._entries[connection]

    def __len__(self) -> int:
        return sum(self._entries.values())


class FanOut:
    """One topic's; on the event loop. ``deliver`` calls what it is given when every subscription has had the group."""

    __slots__ = (
        "_bytes", "_counts", "_deliver", "_delivering", "_entries", "_in_flight", "_messages", "_scheduled", "_tags",
        "_waiting", "end", "first", "name", "table",
    )  # fmt: skip

    def __init__(self, name: str, in_flight: InFlight, deliver: Callable[[FanOutGroup, Done], None]) -> None:
        self.name = name
        self.first = 0
        self.end = 0
        self.table = LedgerTable()
        place = Ledger(0, 0, 0, 0)
        place.entries = place.messages = 1
        self.table.add(place)
        self._in_flight = in_flight
        self._deliver = deliver
        self._scheduled: asyncio.Handle | None = None
        self._delivering = False
        self._start()

    def _start(self) -> None:
        self._entries: list[bytes] = []
        self._counts: list[int] = []
        self._tags: list[tuple[PendingEntry, int, int]] = []
        """Who is to have a receipt, with messages and bytes; bytes -1: dropped."""
        self._waiting: list[Done] = []
        """Called after these receipts."""
        self._messages = 0
        self._bytes = 0

    # what a producer needs ---------------------------------------------------------------------------------------

    def append(self, entry: bytes, messages: int, tag: PendingEntry) -> int:
        """Put ``entry`` into the group."""
        if self._bytes < _HELD_BYTES_MAX and self._in_flight.enter(tag[0].connection.session):
            size = len(entry)
            self._entries.append(entry)
            self._counts.append(messages)
            self._tags.append((tag, messages, size))
            self._messages += messages
            self._bytes += size
        else:
            self._tags.append((tag, messages, -1))
        if len(self._tags) >= GROUP_ENTRIES_MAX or self._bytes >= _GROUP_BYTES_MAX:
            self.flush()
        elif self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self.flush)
        return 0

    def append_all(self, entries: list[bytes], tags: Sequence[PendingEntry]) -> None:
        """Put entries of one message each into the group."""
        for entry, tag in zip(entries, tags, strict=True):
            self.append(entry, 1, tag)

    @property
    def next(self) -> int:
        """The next entry is always the first."""
        return 0

    def barrier(self, done: Done, failed: Callable[[PersistenceError], None] | None = None) -> None:
        """Call ``done`` when everything appended before was delivered: now, unless a group takes several turns."""
        self._waiting.append(done)
        self.flush()

    def flush(self) -> None:
        """Deliver what is there, then the receipts (rule 13.2); behind a group that is being delivered nothing yet."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        tags, waiting = self._tags, self._waiting
        if self._delivering or not (tags or waiting):
            return
        entries, messages, size = self._entries, self._messages, self._bytes
        counts = self._counts if messages != len(entries) else None
        self._start()
        delivered = partial(self._delivered, tags, waiting)
        if entries:
            self._delivering = True
            self._deliver(FanOutGroup(entries, counts, messages, size), delivered)
        else:
            delivered()

    def _delivered(self, tags: list[tuple[PendingEntry, int, int]], waiting: list[Done]) -> None:
        self._delivering = False
        if (self._tags or self._waiting) and self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self.flush)
        start, n = 0, len(tags)
        while start < n:
            producer, dropped = tags[start][0].producer, tags[start][2] < 0
            stop = start + 1
            while stop < n and tags[stop][0].producer is producer and (tags[stop][2] < 0) is dropped:
                stop += 1
            self._answer(tags[start:stop], dropped=dropped)
            start = stop
        for done in waiting:
            done()

    def close(self) -> None:
        """Deliver what is there; nothing passes any more."""
        self.flush()
        self._deliver = _nothing

    def _answer(self, tags: list[tuple[PendingEntry, int, int]], *, dropped: bool) -> None:
        producer = tags[0][0].producer
        messages = sum(tag[1] for tag in tags)
        if dropped:
            producer.msg_dropped += messages
        else:
            producer.msg_in += messages
            producer.bytes_in += sum(tag[2] for tag in tags)
            self._in_flight.leave(producer.connection.session, len(tags))
        if producer.open:
            producer.connection.unstored([tag[0] for tag in tags], dropped=dropped)
        else:
            producer.connection.dropped(len(tags))

    # what a log of nothing answers -------------------------------------------------------------------------------

    def cached(self, start: int, entries_max: int, bytes_max: int) -> EntryRun | None:
        """Nothing is."""
        return None

    def read(self, start: int, entries_max: int, bytes_max: int, done: Callable[[EntryRun | Exception], None]) -> None:
        """There is nothing to read."""
        done(MagnetarError(f"{self.name} keeps no messages: it is a non-persistent topic"))

    def position(self, ordinal: int) -> Position:
        """Before the first."""
        return EARLIEST

    def ordinal(self, position: Position) -> int:
        """The next message to come, for every position (rule 13.11)."""
        return 0

    def exact_ordinal(self, position: Position) -> int | None:
        """The id that all messages have."""
        return 0 if position == (0, 0) else None


def _nothing(group: FanOutGroup, done: Done) -> None:
    done()
