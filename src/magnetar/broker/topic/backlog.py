"""How many bytes lie behind a position, as Pulsar estimates it: whole ledgers exactly, of the one that holds the
position the entries that are left times its average entry size (rounded down). No index is read.
"""

from __future__ import annotations

from magnetar.storage.managed_ledger import ManagedLedger


def bytes_behind(log: ManagedLedger, ordinal: int) -> int:
    """Entry bytes behind ``ordinal`` (a mark-delete position)."""
    total = 0
    for ledger in reversed(log.table.ledgers):
        total += ledger.bytes
        if ledger.ordinal <= ordinal:
            consumed = min(ordinal + 1 - ledger.ordinal, ledger.entries)
            if consumed == ledger.entries:
                return total - ledger.bytes
            return total - consumed * (ledger.bytes // ledger.entries)
    return total
