"""The limits that the dispatchers of Shared and Key_Shared obey."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """Limits of one subscription, in messages unless the name says entries; 0 switches an unacknowledged limit off."""

    read_entries_max: int = 100
    round_robin_messages: int = 20
    unacked_per_consumer: int = 50_000
    unacked_per_subscription: int = 200_000
    look_ahead_entries_per_consumer: int = 2_000
    look_ahead_entries_max: int = 20_000
