"""The answer to "may this caller do that?", with its reason and what would change it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str
    """Which rule decided, with the names of role and object: ``alice has consume on public/default``."""
    remedy: str = ""
    """The command that would allow what is refused; empty when it is allowed."""
