"""Namespaces: making, listing, and operations on all of their topics."""

from __future__ import annotations

from typing import Final, Literal

from magnetar.admin_api.models.namespaces import BundlesData, Policies
from magnetar.admin_api.operation import Operation, Parameter, PlainText

NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"
_BUNDLE: Final = NAMESPACE + "/{bundle}"
_PROPERTIES: Final = NAMESPACE + "/properties"
_PROPERTY: Final = NAMESPACE + "/property/{key}"
SYSTEM_TOPICS: Final = Parameter("includeSystemTopic", bool, "Name the broker's own topics as well.", False)
_NO_BUNDLE: Final = {412: "It is not a bundle of the namespace"}

NAMESPACES: Final = (
    Operation(
        "namespaces.list", "GET", "/admin/v2/namespaces/{tenant}", "List the namespaces of a tenant",
        answer=list[str], errors={404: "Tenant does not exist"},
    ),
    Operation("namespaces.get_policies", "GET", NAMESPACE, "Show all policies of a namespace", answer=Policies),
    Operation(
        "namespaces.create", "PUT", NAMESPACE, "Create a namespace", body=Policies, body_required=False,
        example={"retention_policies": {"retentionTimeInMinutes": 1440, "retentionSizeInMB": -1}},
        description="The body sets policies from the beginning; each needs the right that setting it alone needs.",
        errors={409: "Namespace already exists"},
    ),
    Operation(
        "namespaces.delete", "DELETE", NAMESPACE, "Delete a namespace",
        query=(Parameter("force", bool, "Delete its topics as well.", False),),
        errors={405: "Broker doesn't allow forced deletion of namespaces", 409: "Cannot delete non empty namespace"},
    ),
    Operation(
        "namespaces.list_topics", "GET", NAMESPACE + "/topics", "List the topics of a namespace",
        answer=list[str], description="Partitions are listed one by one; a long list is sent piece by piece.",
        query=(
            Parameter("mode", Literal["PERSISTENT", "NON_PERSISTENT", "ALL"], "Which topics.", "PERSISTENT"),
            SYSTEM_TOPICS,
        ),
    ),
    Operation(
        "namespaces.get_bundles", "GET", NAMESPACE + "/bundles", "Show the bundles of a namespace", answer=BundlesData
    ),
    Operation(
        "namespaces.unload", "PUT", NAMESPACE + "/unload", "Unload all topics of a namespace",
        description="Clients come back by themselves, and nothing is lost.",
    ),
    Operation(
        "namespaces.unload_bundle", "PUT", _BUNDLE + "/unload", "Unload the topics of a bundle", errors=_NO_BUNDLE
    ),
    Operation(
        "namespaces.clear_backlog", "POST", NAMESPACE + "/clearBacklog",
        "Acknowledge everything on all subscriptions of a namespace",
    ),
    Operation(
        "namespaces.clear_backlog_for_subscription", "POST", NAMESPACE + "/clearBacklog/{subscription}",
        "Acknowledge everything on one subscription of all topics",
    ),
    Operation(
        "namespaces.clear_bundle_backlog", "POST", _BUNDLE + "/clearBacklog",
        "Acknowledge everything on all subscriptions of a bundle", errors=_NO_BUNDLE,
    ),
    Operation(
        "namespaces.clear_bundle_backlog_for_subscription", "POST", _BUNDLE + "/clearBacklog/{subscription}",
        "Acknowledge everything on one subscription of a bundle's topics", errors=_NO_BUNDLE,
    ),
    Operation(
        "namespaces.unsubscribe", "POST", NAMESPACE + "/unsubscribe/{subscription}",
        "Delete a subscription of all topics of a namespace",
        errors={412: "Subscription has active connected consumers"},
    ),
    Operation(
        "namespaces.unsubscribe_bundle", "POST", _BUNDLE + "/unsubscribe/{subscription}",
        "Delete a subscription of all topics of a bundle",
        errors={412: "It is not a bundle of the namespace, or the subscription has consumers"},
    ),
    Operation(
        "namespaces.get_properties", "GET", _PROPERTIES, "Show the properties of a namespace",
        answer=dict[str, str],
    ),
    Operation(
        "namespaces.set_properties", "PUT", _PROPERTIES, "Add properties to a namespace", body=dict[str, str],
        example={"team": "payments"},
    ),
    Operation("namespaces.clear_properties", "DELETE", _PROPERTIES, "Remove all properties of a namespace"),
    Operation(
        "namespaces.get_property", "GET", _PROPERTY, "Show a property of a namespace",
        answer=PlainText, unset=200,
    ),
    Operation("namespaces.set_property", "PUT", _PROPERTY + "/{value}", "Set a property of a namespace"),
    Operation(
        "namespaces.remove_property", "DELETE", _PROPERTY, "Remove a property of a namespace", answer=PlainText,
        unset=200, description="Answers the value that it had.",
    ),
)  # fmt: skip
"""The operations of this group, without those of single policies."""
