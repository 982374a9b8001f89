"""Subscriptions: making, cursors, backlogs, and why nothing arrives."""

from __future__ import annotations

from typing import Final, Literal

from magnetar.admin_api.models.explanations import SkippedEntries, SubscriptionExplanation, UnacknowledgedMessages
from magnetar.admin_api.models.messages import AnalyzeBacklogResult, MessagePlace, ResetCursorData, SubscriptionStart
from magnetar.admin_api.operation import Operation, Parameter, RawMessage
from magnetar.admin_api.operations.topics import TOPIC

_ONE: Final = TOPIC + "/subscription/{subscription}"
_PROPERTIES: Final = _ONE + "/properties"
_End = Literal["earliest", "latest"]
_PLACE: Final = {"ledgerId": 12, "entryId": 0}
_SUBSCRIPTION: Final = "Subscription not found"
_ONE_TOPIC: Final = "The topic is partitioned or not persistent"
_NOTHING: Final = "There was nothing to expire"

SUBSCRIPTIONS: Final = (
    Operation(
        "subscriptions.list", "GET", TOPIC + "/subscriptions", "List the subscriptions of a topic", answer=list[str]
    ),
    Operation(
        "subscriptions.create", "PUT", _ONE, "Create a subscription", body=_End | SubscriptionStart,
        body_required=False, example="earliest",
        description="Without a body it begins after the last message. A missing topic is created.",
        query=(Parameter("replicated", bool, "Whether its state is for other clusters, too; kept and shown.", False),),
        errors={409: "Subscription already exists for topic"},
    ),
    Operation(
        "subscriptions.delete", "DELETE", _ONE, "Delete a subscription",
        query=(Parameter("force", bool, "Disconnect its consumers.", False),),
        errors={404: _SUBSCRIPTION, 412: "Subscription has active connected consumers"},
    ),
    Operation(
        "subscriptions.get_properties", "GET", _PROPERTIES, "Show the properties of a subscription",
        answer=dict[str, str], errors={404: _SUBSCRIPTION},
    ),
    Operation(
        "subscriptions.set_properties", "PUT", _PROPERTIES, "Replace the properties of a subscription",
        body=dict[str, str], example={"team": "payments"}, errors={404: _SUBSCRIPTION},
    ),
    Operation(
        "subscriptions.get_replicated", "GET", _ONE + "/replicatedSubscriptionStatus",
        "Say whether the state of a subscription is for other clusters", answer=dict[str, bool],
        errors={404: _SUBSCRIPTION, 405: "The topic is not persistent"}, description="By topic or partition.",
    ),
    Operation(
        "subscriptions.set_replicated", "POST", _ONE + "/replicatedSubscriptionStatus",
        "Set whether the state of a subscription is for other clusters", body=bool, example=True,
        errors={404: _SUBSCRIPTION, 405: "The topic is not persistent"},
    ),
    Operation(
        "subscriptions.skip_all_messages", "POST", _ONE + "/skip_all", "Acknowledge everything",
        errors={404: _SUBSCRIPTION},
    ),
    Operation(
        "subscriptions.skip_messages", "POST", _ONE + "/skip/{count}", "Acknowledge the next messages",
        errors={404: _SUBSCRIPTION, 405: "The topic is partitioned"},
    ),
    Operation(
        "subscriptions.skip_unreadable", "POST", _ONE + "/skipUnreadable",
        "Skip the damaged entries that a subscription waits for", answer=SkippedEntries, own=True,
        errors={404: _SUBSCRIPTION},
    ),
    Operation(
        "subscriptions.expire_messages", "POST", _ONE + "/expireMessages/{seconds}",
        "Acknowledge messages that are older", errors={404: _SUBSCRIPTION, 405: _ONE_TOPIC, 409: _NOTHING},
    ),
    Operation(
        "subscriptions.expire_messages_by_id", "POST", _ONE + "/expireMessages",
        "Acknowledge messages up to a message id", body=ResetCursorData | _End, example=_PLACE,
        errors={404: _SUBSCRIPTION, 405: _ONE_TOPIC, 409: _NOTHING},
    ),
    Operation(
        "subscriptions.expire_messages_of_all", "POST", TOPIC + "/all_subscription/expireMessages/{seconds}",
        "Acknowledge messages that are older, on all subscriptions of a topic",
        errors={405: _ONE_TOPIC, 409: _NOTHING},
    ),
    Operation(
        "subscriptions.reset_cursor", "POST", _ONE + "/resetcursor/{timestamp}",
        "Move a subscription to a time", errors={404: _SUBSCRIPTION},
    ),
    Operation(
        "subscriptions.reset_cursor_to_id", "POST", _ONE + "/resetcursor", "Move a subscription to a message id",
        body=ResetCursorData | _End, example=_PLACE, errors={404: _SUBSCRIPTION, 405: _ONE_TOPIC},
    ),
    Operation(
        "subscriptions.peek_message", "GET", _ONE + "/position/{position}", "Show a message of a backlog",
        answer=RawMessage, errors={404: _SUBSCRIPTION, 405: _ONE_TOPIC},
    ),
    Operation(
        "subscriptions.analyze_backlog", "POST", _ONE + "/analyzeBacklog", "Count a backlog by reading it",
        body=MessagePlace | _End, body_required=False, example="earliest", answer=AnalyzeBacklogResult,
        errors={404: _SUBSCRIPTION, 405: _ONE_TOPIC},
    ),
    Operation(
        "subscriptions.explain", "GET", _ONE + "/explain", "Explain why nothing arrives",
        answer=SubscriptionExplanation, own=True, errors={404: _SUBSCRIPTION},
    ),
    Operation(
        "subscriptions.get_unacknowledged", "GET", _ONE + "/unacknowledged",
        "Show the messages of a key that are out or wait", answer=UnacknowledgedMessages, own=True,
        query=(
            Parameter("hash", int, "The hash, as statistics show it."), Parameter("key", str, "The key of messages."),
        ),
        description="Of Key_Shared subscriptions. Give either hash or key.",
        errors={404: _SUBSCRIPTION, 412: "Only Key_Shared with a consumer has hashes of keys"},
    ),
)  # fmt: skip
"""The operations of this group."""
