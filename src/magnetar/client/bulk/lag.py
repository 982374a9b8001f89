"""How far a reader is behind in one topic: in messages, if the broker shows their index, and in time.

Two short looks at the log: what stands where the reader is, and what stands last. The index is the broker's running
number of messages (Apache Pulsar: brokerEntryMetadataInterceptors and exposingBrokerEntryMetadataToClientEnabled).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.client.reader_session import ReaderSession
from magnetar.protocol import commands as c
from magnetar.protocol.entries import measure

_SILENCE: Final = 0.5


class Lag(NamedTuple):
    """The lag of a reader that has something to read."""

    messages: int | None
    """None: the broker does not say."""
    oldest_ms: int | None
    """When the next message to read was published; None if nothing came at once."""


def lag(lookup: Lookup, topic: str, at: ReadPosition, last: ReadPosition) -> Lag:
    """Return the lag of a reader at ``at``, before ``last``, the position after the topic's last message."""
    first = lookup.patiently(lambda: _look(lookup, topic, at))
    final = lookup.patiently(lambda: _look(lookup, topic, ReadPosition(last.ledger, max(last.entry - 1, 0))))
    if first is None:
        return Lag(None, None)
    measured = measure(first.entry)
    begin, end = _index(first), _index(final) if final is not None else None
    if begin is None or end is None:
        return Lag(None, measured.publish_time)
    inside = at.batch if first.message_id[:2] == at[:2] else 0
    return Lag(max(end - begin + max(measured.messages, 1) - inside, 0), measured.publish_time)


def _index(message: c.CommandMessage) -> int | None:
    """Return the broker's index of the entry's last message."""
    return None if message.broker_metadata is None else message.broker_metadata.index


def _look(lookup: Lookup, topic: str, position: ReadPosition) -> c.CommandMessage | None:
    """Return the first entry from a position on."""
    with ReaderSession(lookup, topic, position) as session:
        session.flow(1)
        for push in session.connection.receive(_SILENCE):
            if type(push) is c.CommandMessage:
                return push
    return None
