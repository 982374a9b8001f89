"""What a topic, producer, subscription or consumer passes on, and how fast it was when statistics last looked.

Each object keeps its own, so that no table has to be cleaned when the object is deleted or leaves; an object that is
not used costs one reference.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol


class Throughput(NamedTuple):
    """Counters of a topic or client, or what they gain per second; 0 where it has no such counter."""

    messages_in: float = 0.0
    bytes_in: float = 0.0
    messages_out: float = 0.0
    bytes_out: float = 0.0
    redelivered: float = 0.0
    acked: float = 0.0
    dropped: float = 0.0
    """Messages that non-persistent topics dropped (rule 13.8)."""
    chunks: float = 0.0
    """Chunks, in or out."""
    entries_in: float = 0.0
    entries_out: float = 0.0
    expired: float = 0.0
    """Entries that time to live or a quota took."""
    marks: float = 0.0
    """Records with what a cursor acknowledged."""


_NONE: Final = Throughput()


class Pace(NamedTuple):
    """What statistics know of one thing since their last look."""

    counted: Throughput = _NONE
    """The counters then."""
    rate: Throughput = _NONE
    """What they had gained per second."""


UNSEEN: Final = Pace()
"""Of what is younger than the last look, or was never used."""


class Paced(Protocol):
    """A topic, producer, subscription or consumer."""

    pace: Pace
