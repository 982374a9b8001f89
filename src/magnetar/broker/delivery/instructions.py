"""The instructions that a dispatcher gives to its subscription.

Events (a consumer came, permits came, entries were read) are method calls on a dispatcher; everything that has to
happen outside is returned as these values and carried out in the order of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from magnetar.broker.delivery.consumer_state import ConsumerState


class Slice(NamedTuple):
    """Send the entries ``start`` to ``stop - 1`` to ``consumer``; its permits are charged already."""

    consumer: ConsumerState
    start: int
    stop: int
    picked: Sequence[int] = ()
    """The ordinals that are meant, ascending, if they are not all from ``start`` to ``stop - 1``."""

    @property
    def ordinals(self) -> Sequence[int]:
        """The entries, ascending."""
        return self.picked or range(self.start, self.stop)


class ActiveChange(NamedTuple):
    """Tell ``consumer`` of a Failover subscription whether it is the active one (rule 5.4.5)."""

    consumer: ConsumerState
    active: bool


class Do(Enum):
    """Instructions without an argument."""

    REWIND = "read again from the first unacknowledged entry"
    ARM = "call activate() after the activation delay"
    DISARM = "forget the activation timer"


Instruction: TypeAlias = ActiveChange | Do
