"""The tail of a topic: entries from a position on, without an end, and silence when there are no more at the moment.

It is for a reader that has read a range and needs something that was published after it. Gaps are not reported: they
are not part of the range.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from magnetar.client.bulk.range_reader import PERMITS, Entry
from magnetar.client.errors import ConnectionLostError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.client.reader_session import ReaderSession, consumer_ended
from magnetar.protocol import commands as c

_SILENCE: Final = 0.2


def tail_entries(lookup: Lookup, topic: str, start: ReadPosition) -> Generator[list[Entry], None, None]:
    """Yield lists of consecutive entries, an empty one whenever nothing came for a while, until the caller stops."""
    at = start

    def begin() -> ReaderSession:
        return ReaderSession(lookup, topic, at)

    while True:
        with lookup.patiently(begin) as session:
            session.flow(PERMITS)
            try:
                while True:
                    pushes = session.connection.receive(_SILENCE)
                    found = [
                        Entry(push.message_id.ledger, push.message_id.entry, push.entry)
                        for push in pushes
                        if type(push) is c.CommandMessage and push.message_id[:2] >= at[:2]
                    ]
                    if found:
                        at = ReadPosition(found[-1].ledger, found[-1].entry + 1)
                    yield found
                    if consumer_ended(pushes):
                        break
            except ConnectionLostError:
                yield []
