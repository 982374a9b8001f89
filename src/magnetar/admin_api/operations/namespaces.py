"""Namespaces: making, listing, and operations on all of their topics."""

from __future__ import annotations

from typing import Final, Literal

from magnetar.admin_api.models.namespaces import BundlesData, Policies
from magnetar.admin_api.models.placement import BookieAffinity, TopicHashPositions
from magnetar.admin_api.operation import Operation, Parameter, PlainText

NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"
_BUNDLE: Final = NAMESPACE + "/{bundle}"
_AFFINITY: Final = NAMESPACE + "/persistence/bookieAffinity"
_GROUP: Final = NAMESPACE + "/resourcegroup"
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
    Operation(
        "namespaces.split_bundle", "PUT", _BUNDLE + "/split", "Split a bundle",
        query=(
            Parameter("unload", bool, "Unload its topics.", False),
            Parameter("splitAlgorithmName", str, "How: range_equally_divide, topic_count_equally_divide, ..."),
        ),
        body=list[int], body_required=False, example=[536870912], errors=_NO_BUNDLE,
        description="The body is places of the hash space, for specified_positions_divide.",
    ),
    Operation(
        "namespaces.delete_bundle", "DELETE", _BUNDLE, "Give up a bundle",
        query=(Parameter("force", bool, "Although it has topics.", False),),
        errors={**_NO_BUNDLE, 409: "Cannot delete non empty bundle"},
    ),
    Operation(
        "namespaces.get_topic_hash_positions", "GET", _BUNDLE + "/topicHashPositions",
        "Show where topics of a bundle lie in the hash space", answer=TopicHashPositions, errors=_NO_BUNDLE,
        query=(Parameter("topics", list[str], "These only; full names."),),
    ),
    Operation(
        "namespaces.list_anti_affinity_namespaces", "GET", "/admin/v2/namespaces/{cluster}/antiAffinity/{group}",
        "List the namespaces of an anti-affinity group", answer=list[str],
        query=(Parameter("tenant", str, "Their tenant.", required=True, example="public"),),
        errors={412: "There is no such cluster, or no group"},
    ),
    Operation(
        "namespaces.get_allowed_clusters", "GET", NAMESPACE + "/allowedClusters", "List the clusters that are allowed",
        answer=list[str],
    ),
    Operation(
        "namespaces.set_allowed_clusters", "POST", NAMESPACE + "/allowedClusters", "Set the clusters that are allowed",
        body=list[str], example=["standalone"], success=200, errors={403: "Not allowed to the tenant"},
    ),
    Operation(
        "namespaces.set_migrated", "POST", NAMESPACE + "/migration",
        "Set whether clients of a namespace go where their cluster goes", body=bool, example=False,
    ),
    Operation(
        "namespaces.get_bookie_affinity_group", "GET", _AFFINITY, "Show the racks that a namespace prefers",
        answer=BookieAffinity, unset=204,
    ),
    Operation(
        "namespaces.set_bookie_affinity_group", "POST", _AFFINITY, "Set the racks that a namespace prefers",
        body=BookieAffinity, example={"bookkeeperAffinityGroupPrimary": "rack-1"},
    ),
    Operation(
        "namespaces.delete_bookie_affinity_group", "DELETE", _AFFINITY, "Remove the racks that a namespace prefers"
    ),
    Operation(
        "namespaces.get_resource_group", "GET", _GROUP, "Show the resource group of a namespace",
        answer=PlainText, unset=200,
    ),
    Operation(
        "namespaces.set_resource_group", "POST", _GROUP + "/{resourcegroup}", "Put a namespace into a resource group",
        errors={412: "ResourceGroup does not exist"},
    ),
    Operation("namespaces.remove_resource_group", "DELETE", _GROUP, "Take a namespace out of its resource group"),
)  # fmt: skip
"""The operations of this group, without those of single policies."""
