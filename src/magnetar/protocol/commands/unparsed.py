"""A list of message ids too long to be read in one go."""

from __future__ import annotations

from typing import NamedTuple


class UnparsedCommand(NamedTuple):
    """An ACK or REDELIVER in its bytes; :mod:`magnetar.protocol.unparsed_commands` takes it apart."""

    kind: int
    """Its number among the commands."""
    body: bytes
    """A serialized BaseCommand."""
