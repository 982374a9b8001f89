"""A socket that a test opens and closes."""

from __future__ import annotations

from magnetar.broker.delivery.consumer_state import ConsumerState


class FakeWritable:
    def __init__(self) -> None:
        self.writable = True


def consumer(
    name: str, permits: int = 0, priority: int = 0, ranges: tuple[tuple[int, int], ...] | None = None
) -> ConsumerState:
    """One with an open socket."""
    state = ConsumerState(name, FakeWritable(), priority, ranges)
    state.permits = permits
    return state
