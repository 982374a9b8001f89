"""What is kept of transactions beside one topic's log; it outlives an unload of the topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from typing_extensions import override

from magnetar.protocol.commands.ids import TxnId
from magnetar.transactions.operation_log import OperationLog
from magnetar.transactions.operations import Op, parse_snapshot, replay
from magnetar.transactions.pending_acks import PendingAcks, TransactionAcks
from magnetar.transactions.topic_state import TopicState, survives

TRANSACTIONS: Final = "transactions"


class TransactionFeatureState(OperationLog[TopicState]):
    """One topic's transactions; ``now`` is ahead of the disk by what is in flight."""

    def __init__(self, snapshot: bytes | None, changes: Sequence[bytes]) -> None:
        super().__init__(TopicState(), survives)
        value = parse_snapshot(snapshot)
        if value is not None:
            self.settled.decode(value)
        replay(self.settled, changes)
        self.now: dict[str, PendingAcks] = {}
        for name, pending in self.settled.pending.items():
            living = self.now[name] = PendingAcks()
            for txn, held in pending.held.items():
                living.restore(txn, TransactionAcks.decode(held.encode()))
        self.ended: list[tuple[TxnId, bool]] = []
        """Transactions whose end is durable, and whose acknowledgements were not dealt with yet."""
        self.on_end_durable: Callable[[], None] | None = None
        """Set while the topic is loaded: deals with ``ended``."""

    @override
    def written(self, ops: Sequence[Op]) -> None:
        self.ended += [(TxnId(op[1], op[2]), bool(op[3])) for op in ops if op[0] == "e"]

    def carry_out(self) -> None:
        """An end is durable, and so is everything else that was written with it."""
        if self.on_end_durable is not None:
            self.on_end_durable()
