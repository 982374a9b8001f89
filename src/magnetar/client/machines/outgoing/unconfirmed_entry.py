"""One entry between the moment it is made and its receipt."""

from __future__ import annotations

from typing import Any

from magnetar.client.machines.outgoing.batch_wait import NEVER
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.protocol import commands as c


class UnconfirmedEntry:
    """One entry without a receipt, and the fate that its messages wait for."""

    __slots__ = ("deadline", "entry", "fate", "highest", "is_chunk", "places", "sequence_id", "since", "size", "txn")

    def __init__(
        self, sequence_id: int, highest: int | None, entry: bytes, fate: EntryFate, deadline: float, *, size: int
    ) -> None:
        self.sequence_id = sequence_id
        self.highest = highest
        self.entry: bytes | None = entry
        """None: it timed out, and only its receipt is still to come."""
        self.fate = fate
        self.deadline = deadline
        self.size = size
        """Bytes of the payloads, as the client's memory counts them; 0 once it timed out."""
        self.since = 0.0
        """When its first message was handed in."""
        self.is_chunk = False
        self.places: list[tuple[int, int]] | None = None
        """Of a message in chunks: where its chunks are, as their receipts come; shared by all of them."""
        self.txn: c.TxnId | None = None

    @property
    def messages(self) -> int:
        """How many messages it completes; the chunks before the last one complete none."""
        return self.fate.messages

    @property
    def tokens(self) -> list[Any]:
        """Who wants to hear of its messages."""
        return [token for _, token in self.fate.tokens]

    def without_bytes(self) -> UnconfirmedEntry:
        """Return what keeps its place until its receipt comes, once it has timed out."""
        ghost = UnconfirmedEntry(self.sequence_id, self.highest, b"", EntryFate(batch=False), NEVER, size=0)
        ghost.entry = None
        return ghost
