"""What the metadata of a topic's ledgers and cursors says."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel


class EntryPlace(ApiModel):
    """A ledger and an entry in it."""

    ledger_id: int
    entry_id: int


class LedgerFactsShown(ApiModel):
    """One ledger."""

    ledger_id: int = 0
    entries: int | None = None
    """None: it is open."""
    size: int | None = None
    timestamp: int = 0
    is_offloaded: bool = False
    offloaded_context_uuid: str | None = None


class PlaceRange(ApiModel):
    """Acknowledged entries after the first that is not."""

    range_from: EntryPlace
    range_to: EntryPlace


class CursorFacts(ApiModel):
    """One cursor."""

    version: int = 0
    creation_date: str | None = None
    modification_date: str | None = None
    cursors_ledger_id: int = -1
    mark_delete: EntryPlace | None = None
    individual_deleted_messages: list[PlaceRange] | None = None


class ManagedLedgerInfo(ApiModel):
    """The log of a topic."""

    version: int = 0
    creation_date: str | None = None
    modification_date: str | None = None
    ledgers: list[LedgerFactsShown] = []
    terminated_position: EntryPlace | None = None
    cursors: dict[str, CursorFacts] = {}
    """By name."""
    properties: dict[str, str] | None = None


class PartitionedManagedLedgerInfo(ApiModel):
    """The logs of a partitioned topic."""

    version: int = 0
    partitions: dict[str, ManagedLedgerInfo]
    """By the partition's full name."""


class OfflineLedger(ApiModel):
    """A ledger in a count of backlogs."""

    entries: int = 0
    timestamp: int = 0
    size: int = 0
    ledger_id: int = 0


class OfflineCursor(ApiModel):
    """A cursor in a count of backlogs."""

    cursor_backlog: int = 0
    cursor_ledger_id: int = -1


class OfflineTopicStatistics(ApiModel):
    """Backlogs, as the metadata has them."""

    storage_size: int = 0
    total_messages: int = 0
    message_backlog: int = 0
    broker_name: str = ""
    topic_name: str = ""
    data_ledger_details: list[OfflineLedger] = []
    cursor_details: dict[str, OfflineCursor] = {}
    """By name."""
    stat_generated_at: int = 0
    """Milliseconds since 1970."""
