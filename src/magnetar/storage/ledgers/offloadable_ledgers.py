"""What a log knows of its ledgers' copies outside the directory: recorded, replaced and let go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from magnetar.model.errors import ConflictError
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.ledger import Ledger, LedgerTable
from magnetar.storage.ledgers.span_table import SpanTable
from magnetar.storage.log import records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.write_group import Failed


class CopyHome(Protocol):
    """The store, as copies of ledgers see it."""

    journal: Journal

    def copy_discarded(self, offload: Offload) -> None: ...
    def copy_needed(self, offload: Offload) -> None: ...


class OffloadableLedgers:
    """The part of a managed ledger that has to do with copies; ``table`` and ``spans`` are the log's own."""

    __slots__ = ("_copies", "_journal")

    id: int
    name: str
    deleted: bool
    table: LedgerTable
    spans: SpanTable

    def __init__(self, home: CopyHome) -> None:
        self._copies = home
        self._journal = home.journal

    def record_offload(self, ledger_id: int, offload: Offload, done: Callable[[], None], failed: Failed) -> None:
        """Note durably where a sealed ledger's copy lies; with ``released`` the local entries go.

        Nothing changes before it is durable. An older copy is to be deleted from then on. Raises ConflictError if the
        ledger is gone, open, without its local entries already, or of another length.
        """
        ledger = self.sealed(ledger_id)
        known = ledger.offload
        if known is not None and known.released:
            raise ConflictError(f"{self.name}: ledger {ledger_id} has only its copy {known.key}")
        if (offload.entries, offload.bytes) != (ledger.entries, ledger.bytes):
            raise ConflictError(
                f"{self.name}: ledger {ledger_id} has {ledger.entries} entries of {ledger.bytes} bytes, its copy "
                f"{offload.entries} of {offload.bytes}"
            )

        def durable() -> None:
            self.apply_offload(ledger_id, offload)
            done()

        record = records.json_record(
            records.RecordKind.OFFLOADED, log=self.id, ledger=ledger_id, offload=offload.to_list()
        )
        self._journal.add_record(record, durable, failed)

    def sealed(self, ledger_id: int) -> Ledger:
        """The ledger of that id, which takes no more entries. Raises ConflictError."""
        ledger, following = self.table.of_id(ledger_id), self.table.after(ledger_id)
        if ledger is None or self.deleted:
            raise ConflictError(f"{self.name} has no ledger {ledger_id}: it was trimmed, or never was")
        if following is None or following.ordinal != ledger.end:
            # closed already, perhaps, but its last entries are still being written
            raise ConflictError(f"{self.name}: ledger {ledger_id} is open")
        return ledger

    def apply_offload(self, ledger_id: int, offload: Offload) -> None:
        """The record is durable, or was read by a start. What was trimmed or deleted meanwhile needs no copy."""
        ledger = self.table.of_id(ledger_id)
        if ledger is None or self.deleted:
            self._copies.copy_discarded(offload)
            return
        if ledger.offload is not None and ledger.offload.key != offload.key:
            self._copies.copy_discarded(ledger.offload)
        ledger.offload = offload
        self._copies.copy_needed(offload)
        if offload.released:
            self.spans.drop_ledger(ledger_id)

    def discard_copies(self, ledgers: Iterable[Ledger]) -> None:
        """These ledgers are gone: their copies are to be deleted."""
        for ledger in ledgers:
            if ledger.offload is not None:
                self._copies.copy_discarded(ledger.offload)
