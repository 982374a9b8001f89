"""Read positions of a topic: its first and its last, and those that a publish time or a message index has.

Positions by publish time and by index are found with sessions that begin some seconds back in time (the broker looks
these up) and read on from there. Publish times are those of the producers; where they do not grow, so is "the first
message from then on". The index is known if the broker keeps and shows it: Apache Pulsar's settings
brokerEntryMetadataInterceptors (AppendIndexMetadataInterceptor) and exposingBrokerEntryMetadataToClientEnabled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.client.reader_session import ReaderSession
from magnetar.model.errors import InvalidValueError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import measure

_SILENCE: Final = 1.0
_STEP: Final = 5_000
"""Permits at a time."""
_SLACK: Final = 5
"""Seconds by which clocks may differ without costing a second look."""
_FAR: Final = ReadPosition(1 << 62, 0)
"""After every ledger: a broker begins at its end then."""


def last_position(lookup: Lookup, topic: str) -> ReadPosition:
    """Return the position after the last message that can be read now; START if there is none.

    ``topic`` is no partitioned one.
    """

    def ask() -> ReadPosition:
        with ReaderSession(lookup, topic, START) as session:
            return session.last_position()

    return lookup.patiently(ask)


def written_position(lookup: Lookup, topic: str) -> ReadPosition:
    """Return the position after the last entry that is there, readable or not: markers and open transactions
    included."""

    def ask() -> ReadPosition:
        with ReaderSession(lookup, topic, _FAR, at_end=True) as session:
            return session.placed_at()

    return lookup.patiently(ask)


def first_position(lookup: Lookup, topic: str) -> ReadPosition:
    """Return the position before the first entry that is still there; START if there is none."""

    def ask() -> ReadPosition:
        with ReaderSession(lookup, topic, START) as session:
            if (last := session.last_position()) == START:
                return START
            session.flow(1)
            found = session.messages(_SILENCE)
            if not found and session.placed_at() >= last:
                # All was trimmed.
                return START
            first = (found or session.next_messages())[0].message_id
            return ReadPosition(first.ledger, first.entry)

    return lookup.patiently(ask)


def _entries(session: ReaderSession, end: ReadPosition) -> Iterator[c.CommandMessage]:
    """Yield everything from where the session begins up to ``end``, before which is a message."""
    at = START
    while at < end:
        session.flow(_STEP)
        found = session.messages(_SILENCE)
        if not found:
            if at == START and session.placed_at() >= end:
                return
            # Silence is not the end: it may be read from far away, or the broker has more to do.
            found = session.next_messages()
        for one in found:
            at = ReadPosition(one.message_id.ledger, one.message_id.entry + 1)
            if at > end:
                return
            yield one


def _first(
    lookup: Lookup, topic: str, back: int, wanted: Callable[[c.CommandMessage], bool]
) -> tuple[c.CommandMessage | None, bool, ReadPosition]:
    """Return the first entry that is wanted from ``back`` seconds ago on (0: from the beginning), whether it is the
    first of all that were looked at, and where the topic ends."""

    def ask() -> tuple[c.CommandMessage | None, bool, ReadPosition]:
        with ReaderSession(lookup, topic, START, back=back) as session:
            end = session.last_position()
            for index, message in enumerate(_entries(session, end)):
                if wanted(message):
                    return message, index == 0, end
            return None, False, end

    return lookup.patiently(ask)


def position_at_time(lookup: Lookup, topic: str, time_ms: int, now_ms: int) -> ReadPosition:
    """Return the position before the first message that was published at that time or later; the end if there is
    none."""

    def late(message: c.CommandMessage) -> bool:
        return measure(message.entry).publish_time >= time_ms

    back = max((now_ms - time_ms) // 1000, 0) + _SLACK
    message, first, end = _first(lookup, topic, back, late)
    if first:
        earliest = first_position(lookup, topic)
        while back and first and message is not None and message.message_id[:2] != earliest[:2]:
            # Perhaps earlier ones are as late: the broker's clock is not ours. Or nothing came for a while before.
            back = back * 4 + 60 if back < now_ms // 4000 else 0  # at last from the beginning, which is no time
            message, first, end = _first(lookup, topic, back, late)
    return end if message is None else ReadPosition(message.message_id.ledger, message.message_id.entry)


def position_of_index(lookup: Lookup, topic: str, index: int) -> ReadPosition:
    """Return the position before the message with that index, or the first one after it; the end if there is none.

    Reads up to there.
    """

    def reached(message: c.CommandMessage) -> bool:
        if message.broker_metadata is None or message.broker_metadata.index is None:
            raise InvalidValueError(
                f"{topic}: the broker does not show the index of messages; begin at a position or a time, or set "
                "brokerEntryMetadataInterceptors and exposingBrokerEntryMetadataToClientEnabled there"
            )
        return message.broker_metadata.index >= index

    message, _, end = _first(lookup, topic, 0, reached)
    if message is None:
        return end
    assert message.broker_metadata is not None and message.broker_metadata.index is not None, "just looked at"
    count = measure(message.entry).messages
    inside = count - 1 - (message.broker_metadata.index - index)
    return ReadPosition(message.message_id.ledger, message.message_id.entry, max(inside, 0))
