"""The durable half of a state that changes by operations.

An operation is a list of JSON values. It is applied to the living state by its caller, written with the next
group, and applied to the settled state when it is on disk; so a checkpoint holds exactly what is durable, and replaying
the log walks the same code. See :mod:`magnetar.storage.ledgers.feature_state` for the order of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from magnetar.storage.ledgers.feature_state import StateChange
from magnetar.transactions.operations import Op, ReplayedState, write_operations, write_snapshot

S = TypeVar("S", bound=ReplayedState)


class OperationLog(Generic[S]):
    """A feature state whose changes are operations.

    ``survives`` says what is left of an operation whose group could not be written.

    ``on_durable`` is called with the operations that are on disk now.
    """

    def __init__(self, settled: S, survives: Callable[[Op], Op | None]) -> None:
        self.settled = settled
        self.on_durable: Callable[[Sequence[Op]], None] | None = None
        self._survives = survives
        self._waiting: list[Op] = []
        self._written: list[Op] = []

    def note(self, op: Op) -> None:
        """Write it with the next group; touch the feature state as well."""
        self._waiting.append(op)

    def last(self) -> Op | None:
        """The operation noted last, if it is not being written yet: it may still be changed."""
        return self._waiting[-1] if self._waiting else None

    def in_flight(self) -> list[Op]:
        """Noted and not durable."""
        return self._written + self._waiting

    # feature state -----------------------------------------------------------------------------------------

    def changes(self) -> StateChange | None:
        self._written, self._waiting = self._waiting, []
        if not self._written:
            return None
        return StateChange(write_operations(self._written))

    def durable(self) -> None:
        ops, self._written = self._written, []
        for op in ops:
            self.settled.apply(op)
        if ops:
            self.written(ops)

    def written(self, ops: Sequence[Op]) -> None:
        """These operations are on disk and applied."""
        if self.on_durable is not None:
            self.on_durable(ops)

    def lost(self) -> None:
        kept = map(self._survives, self.in_flight())
        self._waiting = [op for op in kept if op is not None]
        self._written = []

    def snapshot(self) -> bytes:
        return write_snapshot(self.settled)
