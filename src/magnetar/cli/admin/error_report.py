"""Why a command has failed: for people as lines, for programs as an object."""

from __future__ import annotations

from typing import NamedTuple


class ErrorReport(NamedTuple):
    """What went wrong, and what to do next."""

    error: str
    """What went wrong, in one line."""
    status: int | None = None
    """Of a request that was refused."""
    reason: str = ""
    """What the broker says."""
    asked: str = ""
    """The request."""
    following: str = ""
    """What to do next."""

    def lines(self) -> list[str]:
        """Return the lines for people; the first two of a refusal are those of ``pulsar-admin``."""
        said = [self.error]
        if self.status is not None:
            said.append(f"Reason: {self.reason}")
        said += [f"Asked: {self.asked}" if self.asked else "", self.following]
        return [line for line in said if line]

    def members(self) -> dict[str, str | int]:
        """Return the members of the object for programs; what is not known is left out."""
        found = {
            "error": self.error,
            "status": self.status,
            "reason": self.reason,
            "asked": self.asked,
            "next": self.following.removeprefix("Next: "),
        }
        return {name: value for name, value in found.items() if value not in (None, "")}
