"""The entry that says how a transaction ended: COMMIT or ABORT in its metadata, no payload (rule 9.10).

Our own reading never needs it (docs/decisions/007); it is there because entry ids are counted with it.
"""

from __future__ import annotations

from typing import Final

from magnetar.protocol.commands.ids import TxnId
from magnetar.protocol.entries import EntryMetadata, build_entry

COMMIT: Final = 21
ABORT: Final = 22


def marker(txn: TxnId, *, commit: bool, now_ms: int) -> bytes:
    """The whole entry."""
    metadata = EntryMetadata("", 0, now_ms, marker_type=COMMIT if commit else ABORT, txn=txn)
    return build_entry(metadata, b"")
