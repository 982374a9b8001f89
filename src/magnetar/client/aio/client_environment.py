"""What all producers and consumers of one client share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.client.aio.home_loop import HomeLoop
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes
from magnetar.runtime.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientBounds:
    """What a client may use at most where it shares its process with others, as within a broker; None: no bound."""

    topics: int | None = None
    """Topics of one pattern."""
    opening: int | None = None
    """Topics of one consumer that are opened at a time."""
    unpacked: int | None = None
    """Bytes of an unpacked entry, or of a message of chunks; a consumer fails at a larger one."""
    on_entry: Callable[[int], None] | None = None
    """Hears how many bytes each entry has that comes to a consumer."""
    sealed: bool = True
    """Whether encrypted entries that no key opens may stay unacknowledged silently; otherwise a consumer fails."""


UNBOUNDED: Final = ClientBounds()


@dataclass(frozen=True, slots=True)
class Environment:
    """Lookup, time and chance; a simulation has its own."""

    lookup: TopicLookup
    clock: Clock
    rng: random.Random
    timeout: float
    """Seconds that an operation may take."""
    bounds: ClientBounds = UNBOUNDED
    memory: PendingBytes = field(default_factory=PendingBytes)
    """Of all producers together."""
    home: HomeLoop = field(default_factory=HomeLoop)
    """Checked where a call waits, and so not where messages pass by the million."""
