"""Compaction, and copies of ledgers in an object store."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.messages import MessagePlace
from magnetar.admin_api.models.offload import (
    CompactedFiles,
    CompactionPlanFacts,
    LedgerCopy,
    LedgersToOffload,
    ObjectName,
    OffloadProcessStatus,
)
from magnetar.admin_api.models.topics import LongRunningProcessStatus
from magnetar.admin_api.operation import Operation
from magnetar.admin_api.operations.topics import TOPIC

_NOT_KEPT: Final = {405: "The topic is not persistent"}
_FILES: Final = {"files": [], "generation": 1, "horizon": 100, "removed": 10}

OFFLOAD: Final = (
    Operation(
        "topics.trigger_compaction", "PUT", TOPIC + "/compaction", "Begin a run of compaction",
        errors={**_NOT_KEPT, 409: "Compaction already in progress"},
    ),
    Operation(
        "topics.get_compaction_status", "GET", TOPIC + "/compaction", "Show the last run of compaction",
        answer=LongRunningProcessStatus, errors=_NOT_KEPT,
    ),
    Operation(
        "topics.plan_compaction", "POST", TOPIC + "/compaction/plan", "Show what a job that compacts must read",
        answer=CompactionPlanFacts, own=True, errors={**_NOT_KEPT, 409: "Compaction already in progress"},
    ),
    Operation(
        "topics.adopt_compaction", "POST", TOPIC + "/compaction/view", "Take over what a compaction job computed",
        body=CompactedFiles, example=_FILES, own=True,
        errors={**_NOT_KEPT, 403: "A file does not lie in the topic's folder", 409: "It was compacted meanwhile",
                412: "offloadUrl is not set"},
    ),
    Operation(
        "topics.trigger_offload", "PUT", TOPIC + "/offload", "Copy ledgers before a message id to the object store",
        body=MessagePlace, example={"ledgerId": 12, "entryId": 0},
        errors={**_NOT_KEPT, 409: "An offload is running", 412: "offloadUrl is not set"},
    ),
    Operation(
        "topics.get_offload_status", "GET", TOPIC + "/offload", "Show the last run of offloading",
        answer=OffloadProcessStatus, errors=_NOT_KEPT,
    ),
    Operation(
        "topics.list_offloadable_ledgers", "GET", TOPIC + "/offload/ledgers", "List ledgers with their copies",
        answer=LedgersToOffload, own=True, errors=_NOT_KEPT,
    ),
    Operation(
        "topics.adopt_offloaded_ledger", "POST", TOPIC + "/offload/{ledger}", "Take over a copy that a job wrote",
        body=ObjectName, answer=LedgerCopy, own=True, example={"name": "public/default/orders/12"},
        errors={**_NOT_KEPT, 403: "The object does not lie in the topic's folder", 409: "There is no such object",
                412: "offloadUrl is not set"},
    ),
)  # fmt: skip
"""The operations of this group."""
