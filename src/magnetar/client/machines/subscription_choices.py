"""The choices of a subscription beside its type, with the names of the official Python client."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from magnetar.client.errors import ArgumentError
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode

_SLOTS: Final = 1 << 16


class RegexSubscriptionMode(StrEnum):
    """Which topics a pattern is compared with."""

    PersistentOnly = "PersistentOnly"
    NonPersistentOnly = "NonPersistentOnly"
    AllTopics = "AllTopics"


class ConsumerKeySharedPolicy:
    """How the consumers of a Key_Shared subscription share its keys: the parameter ``key_shared_policy``."""

    def __init__(
        self,
        key_shared_mode: KeySharedMode = KeySharedMode.AUTO_SPLIT,
        allow_out_of_order_delivery: bool = False,
        sticky_ranges: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        """``sticky_ranges``: first and last slot of each range of hashes, from 0 to 65,535, with Sticky and only there.

        Raises ArgumentError.
        """
        try:
            mode = KeySharedMode(key_shared_mode)
            ranges = [IntRange(int(first), int(last)) for first, last in sticky_ranges or ()]
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"a KeySharedMode and ranges of two numbers make a policy: {error}") from None
        if (mode is KeySharedMode.STICKY) != bool(ranges):
            raise ArgumentError("KeySharedMode.Sticky and sticky_ranges belong together: give both or none")
        for one in ranges:
            if not 0 <= one.start <= one.end < _SLOTS:
                raise ArgumentError(f"sticky_ranges has {tuple(one)}; write (first, last) from 0 to {_SLOTS - 1}")
        for before, after in zip(sorted(ranges), sorted(ranges)[1:], strict=False):
            if before.end >= after.start:
                raise ArgumentError(f"sticky_ranges {tuple(before)} and {tuple(after)} have slots in common")
        self._policy = KeySharedMeta(mode, tuple(ranges), bool(allow_out_of_order_delivery))

    @property
    def key_shared_mode(self) -> KeySharedMode:
        """The mode."""
        return self._policy.mode

    @property
    def allow_out_of_order_delivery(self) -> bool:
        """Whether a key may come to a new consumer before the old one has acknowledged its messages."""
        return self._policy.allow_out_of_order_delivery

    @property
    def sticky_ranges(self) -> list[tuple[int, int]]:
        """The ranges."""
        return [(one.start, one.end) for one in self._policy.hash_ranges]

    def policy(self) -> KeySharedMeta:
        """Return what goes to the broker."""
        return self._policy
