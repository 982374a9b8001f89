"""Why nothing arrives on a subscription, and where the messages of a key are."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel


class SubscriptionFinding(ApiModel):
    """One reason why nothing arrives, or why all is well."""

    what: str = ""
    """A word for machines."""
    text: str = ""
    """A sentence for people."""
    do: str = ""
    """The next step; empty if there is none."""


class ExplainedConsumer(ApiModel):
    """A consumer, as far as it explains what is delivered."""

    consumer_name: str = ""
    available_permits: int = 0
    unacked_messages: int = 0
    blocked_consumer_on_unacked_msgs: bool = False
    takes_bytes: bool = False
    """Whether its connection takes more bytes now."""
    active: bool = False


class SubscriptionExplanation(ApiModel):
    """Why nothing arrives on a subscription."""

    topic: str = ""
    subscription: str = ""
    type: str = ""
    summary: str = ""
    """The most significant finding."""
    findings: list[SubscriptionFinding] = []
    msg_backlog: int = 0
    msg_delayed: int = 0
    msg_in_replay: int = 0
    unacked_messages: int = 0
    mark_delete_position: str = ""
    next_new_message: str | None = None
    consumers: list[ExplainedConsumer] = []


class UnacknowledgedMessages(ApiModel):
    """Messages of one hash of keys that are out or wait (Key_Shared)."""

    hash: int = 0
    keys: list[str] = []
    owner: str | None = None
    """The consumer that the hash belongs to now."""
    held_by: str | None = None
    """The consumer that has its messages."""
    draining: bool = False
    unacknowledged: list[str] = []
    waiting: list[str] = []
    complete: bool = True
    """Whether all ids are shown."""


class SkippedEntries(ApiModel):
    """How many entries were skipped."""

    entries_skipped: int = 0
