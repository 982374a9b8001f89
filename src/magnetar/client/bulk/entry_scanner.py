"""What a range of a topic holds: the messages and bytes of each entry, and when they were published.

The protocol has no question for this, so entries are read and what stands at their head is kept. An `EntryScanner`
follows one query: it goes on where it stopped, so it reads everything once, and no further than it is asked to. The
broker sends as many messages as it was permitted, so what limits a query also limits what is read ahead of it.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final, NamedTuple

from magnetar.client.bulk.entry_info import EntryInfo
from magnetar.client.errors import ConnectionLostError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.client.reader_session import ConsumerEnd, ReaderSession
from magnetar.protocol import commands as c
from magnetar.protocol.entries import measure

_SILENCE: Final = 1.0
_STEP: Final = 5_000
"""Permits at a time while only bytes are limited."""


class EntryScan(NamedTuple):
    """What a scan has found."""

    entries: list[EntryInfo]
    end: ReadPosition
    """Up to where everything is known."""


class EntryScanner:
    """Scans one topic or partition, for one thread."""

    def __init__(self, lookup: Lookup, topic: str) -> None:
        self._lookup = lookup
        self._topic = topic
        self._session: ReaderSession | None = None
        self._permits = 0
        self._quiet = False
        self._from = self._next = START
        self._known: deque[EntryInfo] = deque()

    def scan(self, start: ReadPosition, until: ReadPosition, *, messages: int = 0, size: int = 0) -> EntryScan:
        """Scan from ``start`` to ``until``, or to that many messages or bytes if that is less; 0 is no limit."""
        if not self._from <= start <= self._next:
            self.close()
            self._known.clear()
            self._next = start
        self._from = start
        while self._known and (self._known[0].ledger, self._known[0].entry) < start[:2]:
            self._known.popleft()
        found_messages = sum(one.messages for one in self._known) - start.batch
        found_size = sum(one.size for one in self._known)
        if start.batch and self._known:
            found_size -= self._known[0].size * start.batch // max(self._known[0].messages, 1)
        while self._next < until and not ((messages and found_messages >= messages) or (size and found_size >= size)):
            wanted = messages - found_messages if messages else _STEP
            for one in self._lookup.patiently(partial(self._read, wanted)):
                found_messages += one.messages
                found_size += one.size
                self._known.append(one)
            if self._quiet:
                # Nothing comes any more: what is left up to there holds no messages for readers.
                self._next = max(self._next, until)
        return EntryScan(list(self._known), min(self._next, until))

    def _read(self, wanted: int) -> list[EntryInfo]:
        """Return the entries that came next; waits a while for them."""
        if self._session is None:
            self._session, self._permits = ReaderSession(self._lookup, self._topic, self._next), 0
        try:
            if self._permits <= 0:
                # Entries come whole, so the broker may have sent more than was permitted, and counts that.
                self._session.flow(wanted - self._permits)
                self._permits = wanted
            pushes = self._session.connection.receive(_SILENCE)
        except ConnectionLostError:
            self.close()
            raise
        found: list[EntryInfo] = []
        for push in pushes:
            if isinstance(push, ConsumerEnd):
                self.close()
                break
            if type(push) is c.CommandMessage:
                one = measure(push.entry)
                self._permits -= max(one.messages, 1)
                at = ReadPosition(push.message_id.ledger, push.message_id.entry)
                if at[:2] >= self._next[:2]:
                    found.append(EntryInfo(at.ledger, at.entry, one.messages, one.size, one.publish_time))
                    self._next = ReadPosition(at.ledger, at.entry + 1)
        self._quiet = not pushes
        return found

    def close(self) -> None:
        """Close the connection; the next scan makes another."""
        if self._session is not None:
            self._session.connection.close()
            self._session = None


def entries_at(lookup: Lookup, topic: str, position: ReadPosition, messages: int = 1) -> list[EntryInfo]:
    """Return the first entries from a position on with about so many messages, fewer if they do not come at once."""

    def ask() -> list[EntryInfo]:
        with ReaderSession(lookup, topic, position) as session:
            session.flow(messages)
            pushes = session.connection.receive(_SILENCE)
            return [
                EntryInfo(push.message_id.ledger, push.message_id.entry, one.messages, one.size, one.publish_time)
                for push in pushes
                if type(push) is c.CommandMessage and (one := measure(push.entry))
            ]

    return lookup.patiently(ask)
