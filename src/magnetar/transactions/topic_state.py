"""What one topic keeps of transactions: its buffer, and what each subscription holds reserved. Pure.

Operations, each a JSON list:

    w most least start stop            entries of an open transaction
    e most least commit marker         it ended; marker: ordinal, -1 if the disk refused it, null if none is due
    p subscription most least held     acknowledgements reserved
    d subscription most least          what was reserved and committed is in the cursor, as durable as this
    x subscription                     the subscription is gone
    t first                            the log was trimmed

Between ``e`` and ``d`` the committed acknowledgements stand in :attr:`TopicState.owed`: a start hands them over again.
"""

from __future__ import annotations

from typing import Any

from magnetar.protocol.commands.ids import TxnId
from magnetar.transactions.buffer import NO_MARKER, TransactionBuffer
from magnetar.transactions.operations import Op
from magnetar.transactions.pending_acks import PendingAcks, TransactionAcks


class TopicState:
    """The durable state, and how it changes."""

    def __init__(self) -> None:
        self.buffer = TransactionBuffer()
        self.pending: dict[str, PendingAcks] = {}
        self.owed: dict[tuple[str, TxnId], TransactionAcks] = {}
        """Committed acknowledgements that a cursor may not have yet."""

    def apply(self, op: Op) -> None:
        kind = op[0]
        if kind == "w":
            self.buffer.wrote(TxnId(op[1], op[2]), op[3], op[4])
        elif kind == "e":
            self._ended(TxnId(op[1], op[2]), commit=bool(op[3]), marker=op[4])
        elif kind == "p":
            self.pending_of(op[1]).restore(TxnId(op[2], op[3]), TransactionAcks.decode(op[4]))
        elif kind == "d":
            self.owed.pop((op[1], TxnId(op[2], op[3])), None)
        elif kind == "x":
            self.forget(op[1])
        else:
            self.buffer.trimmed(op[1])

    def pending_of(self, subscription: str) -> PendingAcks:
        """What is reserved on a subscription."""
        found = self.pending.get(subscription)
        if found is None:
            found = self.pending[subscription] = PendingAcks()
        return found

    def _ended(self, txn: TxnId, *, commit: bool, marker: int | None) -> None:
        if marker is not None or txn in self.buffer.open:
            self.buffer.ended(txn, commit=commit, marker=NO_MARKER if marker is None else marker)
        for name, pending in list(self.pending.items()):
            held = pending.take(txn)
            if held is not None and commit:
                self.owed[name, txn] = held
            if not pending:
                del self.pending[name]

    def forget(self, subscription: str) -> None:
        """Forget a subscription that is gone, and what was reserved on it."""
        self.pending.pop(subscription, None)
        for key in [key for key in self.owed if key[0] == subscription]:
            del self.owed[key]

    def open_ones(self) -> set[TxnId]:
        """Transactions that have something here and have not ended."""
        return set(self.buffer.open).union(*(pending.held for pending in self.pending.values()))

    def encode(self) -> Any:
        """Return everything as JSON values."""
        return {
            "buffer": self.buffer.encode(),
            "pending": [
                [name, txn.most, txn.least, held.encode()]
                for name, pending in self.pending.items()
                for txn, held in pending.held.items()
            ],
            "owed": [[name, txn.most, txn.least, held.encode()] for (name, txn), held in self.owed.items()],
        }

    def decode(self, value: Any) -> None:
        """Take what :meth:`encode` returned, into an empty state."""
        self.buffer.decode(value["buffer"])
        for name, most, least, held in value["pending"]:
            self.pending_of(name).restore(TxnId(most, least), TransactionAcks.decode(held))
        for name, most, least, held in value["owed"]:
            self.owed[name, TxnId(most, least)] = TransactionAcks.decode(held)


def survives(op: Op) -> Op | None:
    """What is left of an operation whose group was lost: entries and markers are gone, decisions are not."""
    if op[0] == "w":
        return None
    if op[0] == "e" and op[4] is not None:
        return [*op[:4], NO_MARKER]
    return op
