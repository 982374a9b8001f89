"""One consumer as dispatchers see it: permits, unacknowledged entries, rank.

Permits and unacknowledged counts are in MESSAGES, the pending map is per ENTRY: ordinal to the number of messages
that were live when the entry was sent (rules 5.2.1, 5.7.8). Permits that arrive while the consumer is blocked for
too many unacknowledged messages are parked and count only when it is unblocked (rule 5.9.10).
"""

from __future__ import annotations

from typing import Final, Protocol

from typing_extensions import override

PERMITS_MAX: Final = (1 << 31) - 1
"""The most permits of a consumer: more overflow an int in Apache Pulsar and have no effect here."""


class Writable(Protocol):
    """Whether the consumer's socket takes more; read at the moment an entry is given away."""

    @property
    def writable(self) -> bool: ...


class ConsumerState:
    """One consumer, owned by the dispatcher that it was added to; compared by identity."""

    __slots__ = (
        "blocked",
        "connection",
        "description",
        "name",
        "parked",
        "pending",
        "permits",
        "priority",
        "ranges",
        "unacked",
    )

    def __init__(
        self, name: str, connection: Writable, priority: int = 0, ranges: tuple[tuple[int, int], ...] | None = None
    ) -> None:
        self.name = name
        self.connection = connection
        self.priority = priority
        self.description = f"Consumer{{consumerName={name}}}" if ranges else ""
        """How an error names a consumer that declared ranges to another client (rule 5.6.8)."""
        self.ranges = ranges
        """Hash ranges, both ends inclusive, that a STICKY or a key-range Exclusive consumer declared."""
        self.permits = 0
        """May be negative after a batch or, single-active, after a read (rule 5.1.10)."""
        self.parked = 0
        self.unacked = 0
        self.pending: dict[int, int] = {}
        self.blocked = False

    def flow(self, permits: int) -> None:
        """FLOW arrived; the caller has refused ``permits < 1`` (rule 5.2.1)."""
        if self.blocked:
            self.parked = min(self.parked + permits, PERMITS_MAX)
        else:
            self.permits = min(self.permits + permits, PERMITS_MAX)

    @property
    def available(self) -> bool:
        """Whether an entry may be given to it now (rule 5.5.2)."""
        return self.permits > 0 and not self.blocked and self.connection.writable

    def unblock(self) -> None:
        """Permits parked meanwhile start to count (rule 5.8.6)."""
        self.blocked = False
        self.permits = min(self.permits + self.parked, PERMITS_MAX)
        self.parked = 0

    def check(self) -> None:
        """Assert the links between the counters."""
        assert self.unacked == sum(self.pending.values()), (self.name, self.unacked, self.pending)
        assert all(messages > 0 for messages in self.pending.values())
        assert self.blocked or self.parked == 0
        assert self.parked >= 0

    @override
    def __repr__(self) -> str:
        return f"ConsumerState({self.name!r}, permits={self.permits}, unacked={self.unacked})"
