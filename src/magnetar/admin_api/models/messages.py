"""Messages and their places."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel


class MessageId(ApiModel):
    """The place of a message."""

    ledger_id: int
    """-1 before the first message, 9223372036854775807 after the last one."""
    entry_id: int
    partition_index: int = -1
    """-1: the topic has no partitions."""
    batch_index: int = -1
    batch_size: int = 0


class ResetCursorData(MessageId):
    """The place that a cursor moves to."""

    is_excluded: bool | None = None
    """Whether the message itself is left out."""
    properties: dict[str, str] | None = None
    """Of the subscription, where one is made."""


class SubscriptionStart(ApiModel):
    """Where a new subscription begins, and its properties; without a place it begins after the last message."""

    ledger_id: int | None = None
    entry_id: int | None = None
    properties: dict[str, str] | None = None
    """Texts of your own."""


class AnalyzeBacklogResult(ApiModel):
    """What reading a backlog found."""

    entries: int = 0
    messages: int = 0
    markers: int = 0
    filter_rejected_entries: int = 0
    filter_accepted_entries: int = 0
    filter_rescheduled_entries: int = 0
    filter_rejected_messages: int = 0
    filter_accepted_messages: int = 0
    filter_rescheduled_messages: int = 0
    aborted: bool = False
    """Whether the time or the number of entries that may be read ended before the backlog did."""
    first_message_id: str | None = None
    last_message_id: str | None = None
