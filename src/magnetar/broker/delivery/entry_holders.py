"""Which consumer of a Shared subscription has an entry out, when another one speaks of it.

Most acknowledgements come from the consumer that has the entry, and are found there. When one comes from another, all
consumers would have to be asked for each entry. So the first question notes who has what, and what goes out after it is
noted too, until as many entries have gone out as were noted first: then the next question begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from magnetar.broker.delivery.consumer_state import ConsumerState

_FEW: Final = 4
"""So many consumers are asked one by one."""
_LEAST: Final = 1000
"""Entries that go out before holders are noted no more, at least."""


class EntryHolders:
    """Owned by one dispatcher. What came back or was acknowledged stays noted until an end of noting."""

    __slots__ = ("_holder", "_left", "noting")

    def __init__(self) -> None:
        self.noting = False
        """Whether what goes out has to be noted."""
        self._left = 0
        """Entries that go out before noting ends."""
        self._holder: dict[int, ConsumerState] = {}
        """Entries that are out, and some that were."""

    def of(self, ordinal: int, consumers: Sequence[ConsumerState]) -> ConsumerState | None:
        """Which of ``consumers``, the dispatcher's, has this entry."""
        if len(consumers) <= _FEW:
            for consumer in consumers:
                if ordinal in consumer.pending:
                    return consumer
            return None
        if not self.noting:
            self.noting = True
            for consumer in consumers:
                self._holder.update(dict.fromkeys(consumer.pending, consumer))
            self._left = max(len(self._holder), _LEAST)
        holder = self._holder.get(ordinal)
        return holder if holder is not None and ordinal in holder.pending else None

    def note(self, holder: ConsumerState, ordinals: Iterable[int]) -> None:
        """These entries went out to ``holder``; to be called while :attr:`noting`."""
        went = dict.fromkeys(ordinals, holder)
        self._left -= len(went)
        if self._left < 0:
            self.clear()
        else:
            self._holder.update(went)

    def clear(self) -> None:
        """Note no more."""
        self.noting = False
        self._holder.clear()

    def check(self, consumers: Sequence[ConsumerState]) -> None:
        """Assert that all that is out is noted; for tests."""
        if self.noting:
            for consumer in consumers:
                assert all(self._holder[ordinal] is consumer for ordinal in consumer.pending)
        else:
            assert not self._holder
