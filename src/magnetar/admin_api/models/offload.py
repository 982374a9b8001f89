"""Offloaded ledgers and compaction jobs."""

from __future__ import annotations

from typing import Any

from magnetar.admin_api.models.messages import MessagePlace
from magnetar.admin_api.models.record import ApiModel
from magnetar.admin_api.models.topics import LongRunningProcessStatus


class OffloadProcessStatus(LongRunningProcessStatus):
    """The last run of offloading."""

    first_unoffloaded_message: MessagePlace | None = None


class LedgerCopy(ApiModel):
    """The copy of a ledger in an object store."""

    url: str = ""
    """The object store."""
    name: str = ""
    """The object."""
    digest: str = ""
    size: int = 0
    """Bytes."""
    recorded: int = 0
    """When the broker took it over, in milliseconds since 1970."""
    released: bool = False
    """Whether the broker has let go of its own copy."""


class OffloadableLedger(ApiModel):
    """A ledger, and where its copy is."""

    ledger_id: int = 0
    entries: int = 0
    messages: int = 0
    size: int = 0
    """Bytes."""
    first_index: int = 0
    ordinal: int = 0
    """The ordinal of its first entry."""
    copy_place: LedgerCopy | None = None
    """None: there is no copy."""
    refused: str = ""
    """Why it cannot be copied; empty if it can."""


class LedgersToOffload(ApiModel):
    """Every ledger of a topic."""

    url: str | None = None
    """The object store for copies (offloadUrl)."""
    log: int = 0
    ledgers: list[OffloadableLedger] = []


class ObjectName(ApiModel):
    """An object below offloadUrl."""

    name: str


class CompactionPlanFacts(ApiModel):
    """What a job that compacts a topic has to read."""

    url: str | None = None
    log: int = 0
    generation: int = 0
    view: str = ""
    """The view that the topic has now; empty for none."""
    start: int = 0
    horizon: int = 0
    start_position: tuple[int, int] = (0, 0)
    horizon_position: tuple[int, int] = (0, 0)
    retain_keyless: bool = False


class CompactedFile(ApiModel):
    """A file that a compaction job wrote."""

    name: str
    digest: str
    unit: int
    entries: int
    bytes: int


class CompactedFiles(ApiModel):
    """What a compaction job computed."""

    files: list[CompactedFile]
    generation: int
    horizon: int
    removed: int


class ScannedLedgers(ApiModel):
    """Copies of ledgers in the object store."""

    objects: list[dict[str, Any]] = []
    total: int = 0
    errors: int = 0
    unknown: int = 0
