"""The interface that all subscription types show to the subscription.

A subscription keeps the read position and does the reading; the dispatcher decides. One round is: ask
:meth:`Dispatcher.plan_replay` and, if it names nothing, :meth:`Dispatcher.wanted`; read; hand what was read to
:meth:`Dispatcher.replay` or :meth:`Dispatcher.assign`; send the slices.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.instructions import Instruction, Slice


class Dispatcher:  # no ABC: in the compiled build isinstance would take each of its subclasses for the others
    """The base of the four subscription types. No method waits, and no call reenters another."""

    consumers: list[ConsumerState]
    key_slot: Callable[[bytes], int] | None = None
    """How to cut a sticky key into a slot; None: this dispatcher does not look at keys, pass ``slots=None``."""
    unacked = 0
    """Messages out and not acknowledged; stays 0 for the single-active types (rule 5.7.5)."""
    blocked = False
    """Too many unacknowledged messages on the whole subscription (rule 5.9.10)."""

    only_forward = False
    """Nothing is ever replayed, and :meth:`take_all` is worth asking."""

    @property
    def in_replay(self) -> int:
        """Entries that were read or sent before and wait to go out."""
        return 0

    @abstractmethod
    def add(self, consumer: ConsumerState) -> list[Instruction]:
        """A consumer joins. Raises ConsumerBusyError or ConsumerAssignError and changes nothing if it may not."""

    @abstractmethod
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        """A consumer left: the entries that it did not acknowledge belong to the others."""

    def flow(self, consumer: ConsumerState, permits: int) -> None:
        """More permits; remembered for a consumer that is not active now (rule 5.4.7)."""
        consumer.flow(permits)

    def set_limits(self, limits: DispatchLimits) -> None:
        """These limits apply from now on."""
        return

    @abstractmethod
    def wanted(self) -> int:
        """How many new entries should be read now; 0 when no consumer could take one."""

    @abstractmethod
    def assign(
        self, start: int, stop: int, counts: Sequence[int] | None, slots: Sequence[int] | None
    ) -> tuple[list[Slice], int]:
        """Assign the new unacknowledged entries ``start`` to ``stop - 1``; returns the slices and the next ordinal to
        read.

        ``counts[i]`` is the number of live messages in entry ``start + i``, None: one each.
        """

    def take_all(self, count: int) -> ConsumerState | None:
        """Assign so many new unacknowledged entries of one message each to one consumer, which is returned.

        None, and nothing has changed, unless a whole turn of rounds would give all of them to it.
        """
        return None

    def new_turn(self) -> None:
        """The rounds that follow do not continue earlier ones."""
        return

    def plan_replay(self) -> list[int]:
        """Ordinals, ascending, that should be read and given to :meth:`replay` before anything new."""
        return []

    def replay(self, start: int, stop: int, counts: Sequence[int] | None) -> list[Slice]:
        """Entries ``start`` to ``stop - 1`` were read again; those planned and not acknowledged go out."""
        return []

    def acknowledged(self, consumer: ConsumerState, ordinals: Iterable[int]) -> bool:
        """These entries are fully acknowledged; returns whether a consumer that could take none may take entries
        again."""
        return False

    def acknowledged_until(self, ordinal: int) -> None:
        """Everything up to ``ordinal`` needs no delivery any more (skip, trimmed data)."""
        return

    def withdraw(self, ordinals: Iterable[int]) -> bool:
        """None of these may go out now: remove them from the replay queue; returns whether any were in it."""
        return False

    def has(self, ordinal: int) -> bool:
        """Whether an entry is out or waits to go out again; always False for the single-active types."""
        return False

    def take_back(self, ordinals: Iterable[int]) -> list[int]:
        """These entries have to go out: those that are out already are queued again, no redelivery is counted.

        Returns the others, which no consumer has and which are not queued: the caller has to :meth:`assign` them.
        """
        return list(ordinals)

    def partly_acknowledged(self, consumer: ConsumerState, ordinal: int, live: int) -> bool:
        """``live`` messages of a batch remain unacknowledged; returns what :meth:`acknowledged` does."""
        return False

    @abstractmethod
    def redeliver(self, consumer: ConsumerState, ordinals: Iterable[int] | None) -> list[Instruction]:
        """The consumer asked for redelivery of these entries, or of all that it has (None)."""

    def redelivery_counts(self) -> dict[int, int]:
        """The redelivery counts by ordinal; empty for the types that do not track it (rule 5.8.3)."""
        return {}

    @abstractmethod
    def check(self) -> None:
        """Assert every cross-link; for tests."""
