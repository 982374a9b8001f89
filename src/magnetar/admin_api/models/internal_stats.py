"""How a topic is stored: its ledgers and cursors."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel
from magnetar.admin_api.models.topics import PartitionedTopicMetadata


class LedgerInfoStatistics(ApiModel):
    """One ledger: a piece of a topic."""

    ledger_id: int = 0
    entries: int = 0
    """0 for the ledger that is open."""
    size: int = 0
    offloaded: bool = False
    metadata: str | None = None
    under_replicated: bool = False


class CursorStatistics(ApiModel):
    """One cursor: the place of a subscription."""

    mark_delete_position: str | None = None
    """The last entry before the first that is not acknowledged: ledger:entry."""
    read_position: str | None = None
    waiting_read_op: bool = False
    pending_read_ops: int = 0
    messages_consumed_counter: int = 0
    cursor_ledger: int = 0
    cursor_ledger_last_entry: int = 0
    individually_deleted_messages: str | None = None
    """Acknowledged ranges after markDeletePosition."""
    last_ledger_switch_timestamp: str | None = None
    state: str | None = None
    active: bool = False
    number_of_entries_since_first_not_acked_message: int = 0
    total_non_contiguous_deleted_messages_range: int = 0
    subscription_have_pending_read: bool = False
    subscription_have_pending_replay_read: bool = False
    entries_unreadable_skipped: int | None = None
    """magnetar's own, shown after damage only."""
    unreadable_ranges_skipped: list[str] | None = None
    unreadable_ranges_waiting: list[str] | None = None
    properties: dict[str, int] | None = None


class ManagedLedgerStatistics(ApiModel):
    """The log of a topic."""

    entries_added_counter: int = 0
    number_of_entries: int = 0
    total_size: int = 0
    """Bytes."""
    current_ledger_entries: int = 0
    current_ledger_size: int = 0
    last_ledger_created_timestamp: str | None = None
    last_ledger_creation_failure_timestamp: str | None = None
    waiting_cursors_count: int = 0
    pending_add_entries_count: int = 0
    last_confirmed_entry: str | None = None
    state: str | None = None
    ledgers: list[LedgerInfoStatistics] | None = None
    cursors: dict[str, CursorStatistics] = {}
    """By name."""


class TopicInternalStatistics(ManagedLedgerStatistics):
    """How a topic is stored."""

    schema_ledgers: list[LedgerInfoStatistics] | None = None
    compacted_ledger: LedgerInfoStatistics | None = None


class PartitionedTopicInternalStatistics(ApiModel):
    """How the partitions of a topic are stored."""

    metadata: PartitionedTopicMetadata = PartitionedTopicMetadata()
    partitions: dict[str, TopicInternalStatistics] = {}
    """By the partition's full name."""
