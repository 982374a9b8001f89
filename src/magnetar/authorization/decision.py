"""The answer to "may this caller do that?", with its reason and what would change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str
    """Which rule decided, with the names of role and object: ``alice has consume on public/default``."""
    suggestion: str | Callable[[], str] = field(default="", repr=False, compare=False)
    """The remedy, or what makes its text: that names all roles of a tenant or a subscription, which may be many, and
    who is refused never sees it."""
    missing: bool = False
    """Whether it is refused because the tenant does not exist, which REST answers with 404."""
    prefix_missing: bool = False
    """Whether it is refused because the subscription's name does not begin with the role (rule 12.7)."""

    @property
    def remedy(self) -> str:
        """The command that would allow what is refused; empty when it is allowed. It names other roles: show it to
        those who may read grants only."""
        return self.suggestion if isinstance(self.suggestion, str) else self.suggestion()
