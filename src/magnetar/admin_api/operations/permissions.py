"""Permissions of namespaces, topics and subscriptions."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.permissions import (
    AuthAction,
    GrantTopicPermission,
    PermissionExplanation,
    RevokeTopicPermission,
)
from magnetar.admin_api.operation import Operation, Parameter
from magnetar.admin_api.operations.namespaces import NAMESPACE
from magnetar.admin_api.operations.topics import TOPIC

_OF: Final = NAMESPACE + "/permissions"
_SUBSCRIPTION: Final = _OF + "/subscription"
_ON_TOPIC: Final = TOPIC + "/permissions"
_ACTIONS: Final = ["produce", "consume"]
_GRANT: Final = [{"topic": "persistent://public/default/orders", "role": "billing", "actions": ["consume"]}]
_ORDERS: Final = [{"topic": "persistent://public/default/orders", "role": "billing"}]

PERMISSIONS: Final = (
    Operation(
        "namespaces.get_permissions", "GET", _OF, "Show what is granted on a namespace",
        answer=dict[str, list[AuthAction]], description="Actions by role.",
    ),
    Operation(
        "namespaces.grant_permission", "POST", _OF + "/{role}", "Grant actions on all topics of a namespace",
        body=list[AuthAction], example=_ACTIONS, description="They replace those that the role had.",
    ),
    Operation("namespaces.revoke_permission", "DELETE", _OF + "/{role}", "Revoke what was granted on a namespace"),
    Operation(
        "namespaces.get_subscription_permissions", "GET", _SUBSCRIPTION, "Show which subscriptions are left to roles",
        answer=dict[str, list[str]], description="Roles by subscription.",
    ),
    Operation(
        "namespaces.grant_subscription_permission", "POST", _SUBSCRIPTION + "/{subscription}",
        "Leave a subscription to roles", body=list[str], example=["billing"],
    ),
    Operation(
        "namespaces.revoke_subscription_permission", "DELETE", _OF + "/{subscription}/{role}",
        "Take a role off a subscription's list",
    ),
    Operation(
        "namespaces.grant_permissions_on_topics", "POST", "/admin/v2/namespaces/grantPermissionsOnTopics",
        "Grant on several topics of one namespace, all or nothing", body=list[GrantTopicPermission], example=_GRANT,
        errors={404: "Topic not found"},
    ),
    Operation(
        "namespaces.revoke_permissions_on_topics", "POST", "/admin/v2/namespaces/revokePermissionsOnTopics",
        "Revoke on several topics of one namespace, all or nothing", body=list[RevokeTopicPermission], example=_ORDERS,
        errors={404: "Topic not found"},
    ),
    Operation(
        "topics.get_permissions", "GET", _ON_TOPIC, "Show what is granted on a topic",
        answer=dict[str, list[AuthAction]], description="Actions by role, those of its namespace included.",
    ),
    Operation(
        "topics.grant_permission", "POST", _ON_TOPIC + "/{role}", "Grant actions on a topic and its partitions",
        body=list[AuthAction], example=_ACTIONS,
    ),
    Operation("topics.revoke_permission", "DELETE", _ON_TOPIC + "/{role}", "Revoke what was granted on a topic"),
    Operation(
        "permissions.explain", "GET", "/admin/v2/permissions/explain", "Explain whether a role may do something",
        answer=PermissionExplanation, own=True,
        query=(
            Parameter("role", str, "Whom the question is about.", required=True, example="billing"),
            Parameter(
                "operation", str,
                "An operation (produce, clear-backlog, GET_STATS, set-retention), a command of the wire (SUBSCRIBE), "
                "or a request (PUT /admin/v2/persistent/acme/orders/t/unload).",
                required=True, example="produce",
            ),
            Parameter("tenant", str, "The tenant that it is about.", ""),
            Parameter("namespace", str, "The namespace, as tenant/namespace.", ""),
            Parameter("topic", str, "The topic; short names lie in public/default.", "", example="orders"),
            Parameter("subscription", str, "The subscription of the topic.", ""),
            Parameter("original", str, "The principal that the role speaks for, if it is a proxy.", ""),
        ),
    ),
)  # fmt: skip
"""The operations of this group."""
