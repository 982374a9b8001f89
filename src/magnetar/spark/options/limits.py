"""What a micro-batch and a task of a source may have at most."""

from __future__ import annotations

from typing import NamedTuple


class ReadLimits(NamedTuple):
    """What a micro-batch may have at most; 0 is no limit."""

    messages: int = 0
    size: int = 0


class TaskSizes(NamedTuple):
    """What a task should have at most; 0 is no limit."""

    messages: int = 0
    size: int = 0
    """Bytes as stored."""

    def weight(self, messages: float, size: float) -> float:
        """Return which part of a task that many messages and bytes are."""
        return max(messages / self.messages if self.messages else 0.0, size / self.size if self.size else 0.0)
