"""Messages and their places."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel


class MessagePlace(ApiModel):
    """The place of a message."""

    ledger_id: int
    """-1 before the first message, 9223372036854775807 after the last one."""
    entry_id: int
    partition_index: int = -1
    """-1: the topic has no partitions."""
    batch_index: int = -1
    batch_size: int = 0


class ResetCursorData(MessagePlace):
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
    markers: int | None = None
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


class RestProducerMessage(ApiModel):
    """One message; how its payload is written depends on the schema."""

    payload: str
    key: str | None = None
    properties: dict[str, str] | None = None
    event_time: int | None = None
    """Milliseconds since 1970."""
    sequence_id: int | None = None
    deliver_at: int | None = None
    deliver_after_ms: int | None = None
    replication_clusters: list[str] | None = None
    disable_replication: bool | None = None


class ProducerMessages(ApiModel):
    """Messages that are published together."""

    messages: list[RestProducerMessage]
    producer_name: str | None = None
    key_schema: str | None = None
    """A schema as a text of JSON, its definition in base64; STRING if none is given."""
    value_schema: str | None = None
    schema_version: int | None = None
    """A version of the topic's schema instead."""


class PublishedMessage(ApiModel):
    """What became of a message."""

    message_id: str | None = None
    """ledger:entry:partition"""
    error_msg: str | None = None
    error_code: int = 0
    """0: stored; 1: it may succeed later; 2: it will not."""
    schema_version: int = 0


class PublishedMessages(ApiModel):
    """What became of each message, in their order."""

    message_publish_results: list[PublishedMessage] = []
    schema_version: int = 0
