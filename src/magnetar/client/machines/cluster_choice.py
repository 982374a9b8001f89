"""Which of several clusters a client uses, as a state machine: 0 is the primary one, the others come in their order.

    PRIMARY    the primary one is used; after ``failover_threshold`` rounds in which it did not answer, the first of
               the others that answers takes its place
    SECONDARY  another one is used; the primary one takes its place again after ``switch_back_threshold`` rounds in
               which it answered, and at once if the one that is used has failed as often as the primary one had to

Where no cluster answers, everything stays as it is.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum, auto


class ChoiceState(Enum):
    PRIMARY = auto()
    SECONDARY = auto()


class ClusterChoice:
    """The one that is used, and what was seen of it and of the primary one."""

    def __init__(self, others: int, failover_threshold: int, switch_back_threshold: int) -> None:
        self.current = 0
        """The number of the one that is used."""
        self._others = others
        self._failover_threshold = failover_threshold
        self._switch_back_threshold = switch_back_threshold
        self._failures = 0
        """Rounds in a row in which the one that is used did not answer."""
        self._recoveries = 0
        """Rounds in a row in which the primary one answered while another is used."""

    @property
    def state(self) -> ChoiceState:
        """Whether the primary one is used."""
        return ChoiceState.PRIMARY if self.current == 0 else ChoiceState.SECONDARY

    def round(self) -> Generator[int, bool, None]:
        """Look once: yields the number of a cluster, and is sent whether it answers; then `current` is decided."""
        answers = yield self.current
        self._failures = 0 if answers else self._failures + 1
        primary = answers
        if self.state is ChoiceState.SECONDARY:
            primary = yield 0
            self._recoveries = self._recoveries + 1 if primary else 0
            if primary and self._recoveries >= self._switch_back_threshold:
                self._use(0)
                return
        if self._failures < self._failover_threshold:
            return
        if primary:
            self._use(0)
            return
        for number in range(1, self._others + 1):
            if number != self.current and (yield number):
                self._use(number)
                return

    def _use(self, number: int) -> None:
        self.current = number
        self._failures = self._recoveries = 0
