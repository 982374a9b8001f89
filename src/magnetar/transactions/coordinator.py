"""The coordinator's decisions: which transactions there are, who takes part, who may end them (rules 9.3 to 9.8).

Pure. Open transactions are all that is ever on disk: an end is one block (docs/decisions/007), and a transaction that
has ended is forgotten. Between its decision and that block being durable it is COMMITTING or ABORTING.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from magnetar.model.errors import (
    ForeignTransactionError,
    InvalidTxnStatusError,
    TooManyTransactionsError,
    TransactionNotFoundError,
)
from magnetar.protocol.commands.ids import TxnId
from magnetar.transactions.operations import Op

OPEN_MAX: Final = 50_000
"""Open transactions where no limit is set: a kilobyte of memory each, and a login is enough to begin them."""
_OWNER_SHOWN: Final = 200
_SPARE_DEADLINES: Final = 1000
"""Deadlines of transactions that have ended, besides one for each that is open: they go when they come to the front."""


class TransactionStatus(Enum):
    """Names as Pulsar shows them."""

    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    ABORTING = "ABORTING"


@dataclass(slots=True)
class Transaction:
    """One that has not ended. Times in milliseconds."""

    id: TxnId
    opened_ms: int
    ttl_ms: int
    owner: str
    """The role that opened it (rule 9.7); empty where clients need not authenticate."""
    status: TransactionStatus = TransactionStatus.OPEN
    partitions: dict[str, None] = field(default_factory=dict)
    """Topics it sends to."""
    subscriptions: dict[tuple[str, str], None] = field(default_factory=dict)
    """Topic and subscription it acknowledges on."""

    @property
    def deadline_ms(self) -> int:
        """The time at which it is aborted if it has not ended by then."""
        return self.opened_ms + self.ttl_ms


def txn_text(txn: TxnId) -> str:
    """The id as Pulsar prints it."""
    return f"({txn.most},{txn.least})"


class OpenTransactions:
    """The open ones of one coordinator: what is on disk, and what operations change."""

    def __init__(self, tc_id: int) -> None:
        self.tc_id = tc_id
        self.next = 0
        """Least significant bits of the next id; never given twice."""
        self.all: dict[TxnId, Transaction] = {}

    def apply(self, op: Op) -> None:
        """``n`` new, ``p`` partitions, ``s`` subscriptions, ``e`` ended; unknown ids are those of ended ones."""
        kind, least = op[0], op[1]
        txn = TxnId(self.tc_id, least)
        if kind == "n":
            self.next = max(self.next, least + 1)
            self.all[txn] = Transaction(txn, op[2], op[3], op[4])
            return
        found = self.all.get(txn)
        if found is None:
            return
        if kind == "p":
            found.partitions.update(dict.fromkeys(op[2]))
        elif kind == "s":
            found.subscriptions.update(dict.fromkeys((topic, name) for topic, name in op[2]))
        else:
            del self.all[txn]

    def encode(self) -> Any:
        """Return everything as JSON values."""
        return {
            "next": self.next,
            "open": [
                [t.id.least, t.opened_ms, t.ttl_ms, t.owner, list(t.partitions), list(map(list, t.subscriptions))]
                for t in self.all.values()
            ],
        }

    def decode(self, value: Any) -> None:
        """Take what :meth:`encode` returned, into an empty state."""
        for least, opened_ms, ttl_ms, owner, partitions, subscriptions in value["open"]:
            self.apply(["n", least, opened_ms, ttl_ms, owner])
            self.apply(["p", least, partitions])
            self.apply(["s", least, subscriptions])
        self.next = value["next"]


class Coordinator:
    """Takes requests, answers with the operation to be written or None if nothing changes; raises what Pulsar answers.

    ``living`` is one step ahead of the disk; its owner applies :meth:`ended` when an end is durable.
    """

    def __init__(self, living: OpenTransactions, active_max: int = 0) -> None:
        self.living = living
        self._active_max = active_max
        self._owned = Counter(t.owner for t in living.all.values())
        self._deadlines = _deadlines(living)

    def begin(self, now_ms: int, ttl_ms: int, owner: str = "") -> tuple[TxnId, Op] | None:
        """A new transaction; None if there are as many as there may be (rule 9.4).

        Without a limit of the operator's, no owner has more than are left for all others. Raises
        TooManyTransactionsError.
        """
        living = self.living
        if self._active_max:
            if len(living.all) >= self._active_max:
                return None
        elif self._owned[owner] >= OPEN_MAX - len(living.all):
            raise TooManyTransactionsError(
                f"{self._owned[owner]} transactions of `{owner[:_OWNER_SHOWN]}` are open, and {len(living.all)} of all "
                f"(at most {OPEN_MAX}): commit or abort some; maxActiveTransactionsPerCoordinator sets another limit"
            )
        txn = TxnId(living.tc_id, living.next)
        op: Op = ["n", txn.least, now_ms, ttl_ms, owner]
        living.apply(op)
        self._owned[owner] += 1
        heapq.heappush(self._deadlines, (now_ms + ttl_ms, txn))
        if len(self._deadlines) > 2 * len(living.all) + _SPARE_DEADLINES:
            self._deadlines = _deadlines(living)
        return txn, op

    def get(self, txn: TxnId, owner: str | None = None) -> Transaction:
        """The transaction of that id. Raises TransactionNotFoundError, also for another client's (rules 9.6, 9.7).

        ``owner`` None: a client that may end every transaction.
        """
        found = self.living.all.get(txn)
        if found is None:
            raise TransactionNotFoundError(f"The transaction with this txdID `{txn_text(txn)}`not found ")
        if owner is not None and found.owner != owner:
            raise ForeignTransactionError(
                f"Client ({owner[:_OWNER_SHOWN]}) is neither the owner of the transaction {txn_text(txn)} nor a "
                "super user"
            )
        return found

    def require_open(self, txn: TxnId, owner: str | None = None) -> Transaction:
        """Raises TransactionNotFoundError, InvalidTxnStatusError."""
        found = self.get(txn, owner)
        if found.status is not TransactionStatus.OPEN:
            raise _wrong_status(found)
        return found

    def add_partitions(self, txn: TxnId, topics: list[str], owner: str | None = None) -> Op | None:
        """It sends to these topics."""
        found = self.require_open(txn, owner)
        new = [topic for topic in topics if topic not in found.partitions]
        return self._do(["p", txn.least, new]) if new else None

    def add_subscriptions(
        self, txn: TxnId, subscriptions: list[tuple[str, str]], owner: str | None = None
    ) -> Op | None:
        """It acknowledges on these."""
        found = self.require_open(txn, owner)
        new = [list(one) for one in subscriptions if one not in found.subscriptions]
        return self._do(["s", txn.least, new]) if new else None

    def end(self, txn: TxnId, *, commit: bool, owner: str | None = None) -> Op | None:
        """It is decided; None: the same was decided before and is not durable yet."""
        found = self.get(txn, owner)
        status = TransactionStatus.COMMITTING if commit else TransactionStatus.ABORTING
        if found.status is status:
            return None
        if found.status is not TransactionStatus.OPEN:
            raise _wrong_status(found)
        found.status = status
        return ["e", txn.least]

    def ended(self, least: int) -> None:
        """Its end is durable."""
        found = self.living.all.get(TxnId(self.living.tc_id, least))
        if found is not None:
            self._owned[found.owner] -= 1
            if not self._owned[found.owner]:
                del self._owned[found.owner]
        self.living.apply(["e", least])

    def _do(self, op: Op) -> Op:
        self.living.apply(op)
        return op

    # time --------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """Return when the next open transaction is due; None if none is open."""
        deadlines = self._deadlines
        while deadlines:
            due, txn = deadlines[0]
            found = self.living.all.get(txn)
            if found is not None and found.status is TransactionStatus.OPEN:
                return due
            heapq.heappop(deadlines)
        return None

    def due(self, now_ms: int) -> list[TxnId]:
        """Open transactions whose time is over; each is named once."""
        out = []
        while (deadline := self.next_deadline()) is not None and deadline <= now_ms:
            out.append(heapq.heappop(self._deadlines)[1])
        return out

    # statistics --------------------------------------------------------------------------------------------------

    def low_water_mark(self) -> int:
        """All transactions below the oldest open one have ended; 0 if none is open, as Pulsar shows it."""
        return min((txn.least for txn in self.living.all), default=1) - 1


def _deadlines(living: OpenTransactions) -> list[tuple[int, TxnId]]:
    """A heap of when each of them is due."""
    found = [(t.deadline_ms, t.id) for t in living.all.values()]
    heapq.heapify(found)
    return found


def _wrong_status(found: Transaction) -> InvalidTxnStatusError:
    return InvalidTxnStatusError(
        f"Expect Txn `{txn_text(found.id)}` to be in `OPEN` status but it is in `{found.status.value}` status "
    )
