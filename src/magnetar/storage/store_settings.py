"""What a store is set to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RESERVE_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What a store is set to; named after Pulsar's settings where there is one."""

    sync_data: bool = True
    """journalSyncData: receipts wait for the disk. False is the named weaker mode."""
    cache_bytes: int = 40 << 20
    """managedLedgerCacheSizeMB, in bytes."""
    segment_bytes: int = 128 << 20
    aligned_bytes_min: int = 32 << 10
    """A group from this size on lies on whole pages and may be written past the page cache."""
    ack_delay_seconds: float = 0.02
    reclaim_bytes_per_second: int = 16 << 20
    """spaceReclaimBytesPerSecond."""
    reserve_bytes: int = RESERVE_BYTES
    """Kept back for times when the disk is full."""
    ledger_entries_max: int = 50_000
    ledger_bytes_max: int = 2048 << 20
    ledger_min_rollover_ms: int = 10 * 60_000
    ledger_max_rollover_ms: int = 240 * 60_000
