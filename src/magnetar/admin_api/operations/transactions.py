"""Transactions; 503 on a broker that has none."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.transactions import (
    BufferInternalStatistics,
    CoordinatorInfo,
    CoordinatorInternalStatistics,
    CoordinatorStatistics,
    PendingAckInternalStatistics,
    PendingAckStatistics,
    PositionInPendingAcks,
    TransactionBufferStatistics,
    TransactionInBuffer,
    TransactionInPendingAcks,
    TransactionMetadata,
)
from magnetar.admin_api.operation import Operation, Parameter

_BASE: Final = "/admin/v3/transactions"
_TOPIC: Final = "{tenant}/{namespace}/{topic}"
_TXN: Final = "{mostSigBits}/{leastSigBits}"
_OFF: Final = {503: "This Broker is not configured with transactionCoordinatorEnabled=true."}
_ERRORS: Final = {404: "There is no such topic, subscription, transaction or coordinator", **_OFF}
_COORDINATOR: Final = Parameter("coordinatorId", int, "One coordinator only.")
_MARKS: Final = Parameter("lowWaterMarks", bool, "Show the low water marks.", False)

TRANSACTIONS: Final = (
    Operation(
        "transactions.list_coordinators", "GET", _BASE + "/coordinators", "List the coordinators",
        answer=list[CoordinatorInfo], errors=_OFF,
    ),
    Operation(
        "transactions.get_coordinator_stats", "GET", _BASE + "/coordinatorStats",
        "Show statistics of coordinators", query=(_COORDINATOR,), errors=_ERRORS,
        answer=dict[str, CoordinatorStatistics] | CoordinatorStatistics,
        description="By the coordinator's number, or of the one that is asked for.",
    ),
    Operation(
        "transactions.get_metadata", "GET", f"{_BASE}/transactionMetadata/{_TXN}", "Show a transaction",
        answer=TransactionMetadata, errors=_ERRORS,
    ),
    Operation(
        "transactions.list_slow", "GET", _BASE + "/slowTransactions/{timeout}",
        "Show transactions that have been open for longer", query=(_COORDINATOR,),
        answer=dict[str, TransactionMetadata], errors=_ERRORS,
    ),
    Operation(
        "transactions.abort", "POST", f"{_BASE}/abortTransaction/{_TXN}", "Abort a transaction",
        errors={**_ERRORS, 409: "It has ended otherwise"},
    ),
    Operation(
        "transactions.get_buffer_stats", "GET", f"{_BASE}/transactionBufferStats/{_TOPIC}",
        "Show what a topic holds of transactions", query=(_MARKS,), answer=TransactionBufferStatistics, errors=_ERRORS,
    ),
    Operation(
        "transactions.get_in_buffer_stats", "GET", f"{_BASE}/transactionInBufferStats/{_TOPIC}/{_TXN}",
        "Show what a transaction published to a topic", answer=TransactionInBuffer, errors=_ERRORS,
    ),
    Operation(
        "transactions.get_pending_ack_stats", "GET", f"{_BASE}/pendingAckStats/{_TOPIC}/{{subName}}",
        "Show what a subscription holds of transactions", query=(_MARKS,), answer=PendingAckStatistics, errors=_ERRORS,
    ),
    Operation(
        "transactions.get_in_pending_ack_stats", "GET",
        f"{_BASE}/transactionInPendingAckStats/{_TOPIC}/{{subName}}/{_TXN}",
        "Show what a transaction acknowledged on a subscription", answer=TransactionInPendingAcks, errors=_ERRORS,
    ),
    Operation(
        "transactions.get_position_stats_in_pending_ack", "GET",
        f"{_BASE}/positionStatsInPendingAck/{_TOPIC}/{{subName}}/{{ledgerId}}/{{entryId}}",
        "Say whether an open transaction has acknowledged a message", answer=PositionInPendingAcks, errors=_ERRORS,
        query=(Parameter("batchIndex", int, "Which message of a batch."),),
    ),
    Operation(
        "transactions.get_coordinator_internal_stats", "GET", _BASE + "/coordinatorInternalStats/{coordinatorId}",
        "Show how a coordinator is stored", answer=CoordinatorInternalStatistics, errors=_ERRORS,
    ),
    Operation(
        "transactions.get_buffer_internal_stats", "GET", f"{_BASE}/transactionBufferInternalStats/{_TOPIC}",
        "Show how a topic's part in transactions is stored", answer=BufferInternalStatistics, errors=_ERRORS,
    ),
    Operation(
        "transactions.get_pending_ack_internal_stats", "GET", f"{_BASE}/pendingAckInternalStats/{_TOPIC}/{{subName}}",
        "Show how a subscription's part in transactions is stored", answer=PendingAckInternalStatistics,
        errors=_ERRORS,
    ),
    Operation(
        "transactions.scale_coordinators", "POST", _BASE + "/transactionCoordinator/replicas",
        "Set the number of coordinators", body=int, example=2, description="Refused: one serves every transaction.",
        errors={406: "There are as many already", 501: "Not available", **_OFF},
    ),
)  # fmt: skip
"""The operations of this group."""
