"""What a limit has to know of an entry: its messages, its size and its publish time."""

from __future__ import annotations

from typing import NamedTuple


class EntryInfo(NamedTuple):
    """One entry without its content."""

    ledger: int
    entry: int
    messages: int
    size: int
    """Bytes as stored."""
    publish_time: int
    """Milliseconds, by the clock of its producer."""
