"""Transactions: coordinators, and what topics and subscriptions hold of them."""

from __future__ import annotations

from magnetar.admin_api.models.internal_stats import ManagedLedgerStatistics
from magnetar.admin_api.models.record import ApiModel


class CoordinatorInfo(ApiModel):
    """A coordinator and its broker."""

    id: int = 0
    broker_service_url: str = ""


class CoordinatorStatistics(ApiModel):
    """A coordinator."""

    state: str = ""
    """Ready, or what it is at."""
    least_sig_bits: int = 0
    """The number of the last transaction."""
    low_water_mark: int = 0
    ongoing_txn_size: int = 0
    recover_start_time: int = 0
    recover_end_time: int = 0


class TransactionInBuffer(ApiModel):
    """What one transaction published to a topic."""

    start_position: str | None = None
    """Its first message."""
    aborted: bool = False


class TransactionInPendingAcks(ApiModel):
    """What one transaction acknowledged on a subscription."""

    cumulative_ack_position: str | None = None


class TransactionMetadata(ApiModel):
    """One transaction."""

    txn_id: str = ""
    """(most significant bits,least significant bits)"""
    status: str = ""
    """OPEN, COMMITTING, COMMITTED, ABORTING, ABORTED, ERROR or TIMEOUT."""
    open_timestamp: int = 0
    timeout_at: int = 0
    """Milliseconds after openTimestamp."""
    produced_partitions: dict[str, TransactionInBuffer] = {}
    """By topic."""
    acked_partitions: dict[str, dict[str, TransactionInPendingAcks]] = {}
    """By topic, by subscription."""


class TransactionBufferStatistics(ApiModel):
    """What a topic holds of transactions."""

    state: str = ""
    max_read_position: str | None = None
    """Consumers get messages up to this one."""
    last_snapshot_timestamps: int = 0
    low_water_marks: dict[str, int] | None = None
    ongoing_txn_size: int = 0
    recover_start_time: int = 0
    recover_end_time: int = 0
    total_aborted_transactions: int = 0
    snapshot_type: str | None = None
    segments_size: int | None = None
    segment_stats: list[dict[str, object]] | None = None


class PendingAckStatistics(ApiModel):
    """What a subscription holds of transactions."""

    state: str = ""
    low_water_marks: dict[str, int] | None = None
    ongoing_txn_size: int = 0
    recover_start_time: int = 0
    recover_end_time: int = 0


class PositionInPendingAcks(ApiModel):
    """Whether a message is acknowledged by an open transaction."""

    state: str = ""
    """PendingAck, NotInPendingAck, MarkDelete, InvalidPosition or PendingAckNotReady."""


class TransactionLogStatistics(ApiModel):
    """A log that transactions are recorded in."""

    managed_ledger_name: str = ""
    managed_ledger_internal_stats: ManagedLedgerStatistics | None = None


class CoordinatorInternalStatistics(ApiModel):
    """How a coordinator is stored."""

    transaction_log_stats: TransactionLogStatistics | None = None


class PendingAckInternalStatistics(ApiModel):
    """How a subscription's part in transactions is stored."""

    pending_ack_log_stats: TransactionLogStatistics | None = None


class BufferInternalStatistics(ApiModel):
    """How a topic's part in transactions is stored."""

    snapshot_type: str | None = None
    single_snapshot_system_topic_internal_stats: TransactionLogStatistics | None = None
    segment_internal_stats: TransactionLogStatistics | None = None
    segment_index_internal_stats: TransactionLogStatistics | None = None
