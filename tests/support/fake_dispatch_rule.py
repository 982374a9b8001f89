"""A dispatch rule whose answers a test sets."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from magnetar.broker.topic.dispatch.dispatch_filter import DispatchRule
from magnetar.model.subscription_types import SubType


class FakeRule(DispatchRule):
    """``shut`` are closed, ``gone`` are dead (and closed), nothing from ``end`` on is readable."""

    def __init__(self, shut: Sequence[int] = (), gone: Sequence[int] = (), end: int = 1 << 60) -> None:
        self.shut = set(shut)
        self.gone = set(gone)
        self.end = end
        self.types = set(SubType)

    def is_closed(self, ordinal: int) -> bool:
        return ordinal in self.shut or ordinal in self.gone

    @override
    def holds_for(self, sub_type: SubType) -> bool:
        return sub_type in self.types

    @override
    def readable_end(self, end: int) -> int:
        return min(end, self.end)

    @override
    def next_open(self, start: int, stop: int) -> int:
        return next((o for o in range(start, stop) if not self.is_closed(o)), stop)

    @override
    def next_closed(self, start: int, stop: int) -> int:
        return next((o for o in range(start, stop) if self.is_closed(o)), stop)

    @override
    def dead(self, start: int, stop: int) -> list[int]:
        return [o for o in range(start, stop) if o in self.gone]
