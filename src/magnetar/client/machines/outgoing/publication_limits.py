"""How much a producer has without receipts, and sends together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationLimits:
    """How much waits, for how long, and how much goes together; 0 is "no limit"."""

    pending_messages: int = 1_000
    send_timeout: float = 30.0
    """Seconds."""
    batching: bool = False
    batch_messages: int = 1_000
    batch_bytes: int = 128 << 10
    batch_delay: float = 0.01
    """Seconds."""
    batch_by_key: bool = False
    chunking: bool = False

    @property
    def routing(self) -> tuple[int, int, float]:
        """A batch's messages, bytes and seconds, as routing goes by them; without batching 0 messages."""
        return (self.batch_messages if self.batching else 0), self.batch_bytes, self.batch_delay
