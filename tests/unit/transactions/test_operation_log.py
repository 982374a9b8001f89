"""The operation noted last may be changed until it is being written."""

from __future__ import annotations

from typing import Any, cast

from magnetar.transactions.operation_log import OperationLog


class Settled:
    """What is on disk: the operations that were applied."""

    def __init__(self) -> None:
        self.applied: list[Any] = []

    def apply(self, op: Any) -> None:
        self.applied.append(op)


def test_the_last_operation_is_there_until_it_is_written() -> None:
    settled = Settled()
    log: OperationLog[Any] = OperationLog(cast(Any, settled), lambda op: op)
    assert log.last() is None
    log.note(["a", 1])
    log.note(["b", 2])
    assert log.last() == ["b", 2]
    assert log.changes() is not None
    assert log.last() is None, "it is on its way to the disk"
    assert log.in_flight() == [["a", 1], ["b", 2]]
    log.durable()
    assert settled.applied == [["a", 1], ["b", 2]]
    assert log.in_flight() == []
