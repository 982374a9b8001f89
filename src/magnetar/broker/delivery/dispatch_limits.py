"""The limits that the dispatchers of Shared and Key_Shared obey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_UNLIMITED: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """Limits of one subscription, in messages unless the name says entries; 0 switches a limit off."""

    read_entries_max: int = 100
    round_robin_messages: int = 20
    unacked_per_consumer: int = 50_000
    unacked_per_subscription: int = 200_000
    look_ahead_entries_per_consumer: int = 2_000
    look_ahead_entries_max: int = 20_000
    of_share: bool = False
    """Whether ``unacked_per_subscription`` is a share of what the broker may have out, which holds for a while only."""

    def look_ahead(self, consumers: int) -> int:
        """Entries that may wait for so many consumers before nothing new is read (rule 5.6.11).

        Without either limit, as many as may be unacknowledged.
        """
        each, all_of_them = self.look_ahead_entries_per_consumer * consumers, self.look_ahead_entries_max
        if each and all_of_them:
            return min(each, all_of_them)
        if each or all_of_them:
            return each or all_of_them
        return min(
            self.unacked_per_consumer * consumers or _UNLIMITED,
            self.unacked_per_subscription or _UNLIMITED,
        )

    @property
    def look_ahead_of_all(self) -> int:
        """The same for a subscription as a whole, however many consumers it has."""
        return self.look_ahead_entries_max or self.unacked_per_subscription or _UNLIMITED
