"""Properties of namespaces, and policies given with a new one (rules of 11.3)."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.config.settings import Settings
from tests.admin.conftest import world
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once

NAMESPACE = "/admin/v2/namespaces/ref/main"


def test_namespace_properties(rest: RestClient) -> None:
    path = NAMESPACE + "/properties"
    assert rest.get(path).json() == {}
    assert rest.put(path, json={"a": "b"}).status_code == 204
    assert rest.put(NAMESPACE + "/property/k/v").status_code == 204
    assert rest.get(path).json() == {"a": "b", "k": "v"}
    assert rest.get(NAMESPACE + "/property/k").text == "v"
    assert rest.delete(NAMESPACE + "/property/k").text == "v"
    assert rest.get(NAMESPACE + "/property/k").content == b""
    assert rest.delete(path).status_code == 204
    assert rest.get(path).json() == {}


@pytest.mark.parametrize("sent", ["group1", '"group2"', "5"])
def test_anti_affinity_group_is_kept_as_it_was_sent(rest: RestClient, sent: str) -> None:
    """Java's client sends the bare name with the content type of JSON, others send it in quotes."""
    path = "/admin/v2/namespaces/ref/main/antiAffinity"
    assert rest.post(path, content=sent, headers={"content-type": "application/json"}).status_code == 204
    assert rest.get(path).text == sent
    for empty in ("", "  "):
        refused = rest.post(path, content=empty, headers={"content-type": "application/json"})
        assert (refused.status_code, refused.json()["reason"]) == (412, "antiAffinityGroup can't be empty")
    assert rest.delete(path).status_code == 204
    assert rest.get(path).status_code == 204


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"bundles": {"boundaries": ["x", "y"]}}, "bundles"),
        ({"bundles": {"boundaries": ["0x00000000", "0x00000000", "0xffffffff"]}}, "bundles"),
        ({"bundles": {"boundaries": [1, 2]}}, "bundles"),
        ({"bundles": {"numBundles": -1}}, "bundles"),
        ({"retention_policies": 5}, "retention_policies"),
        ({"backlog_quota_map": {"x": {}}}, "backlog_quota_map"),
        ({"message_ttl_in_seconds": -5}, "message_ttl_in_seconds"),
        ({"topicDispatchRate": []}, "topicDispatchRate"),
        ({"topicDispatchRate": {"standalone": {"ratePeriodInSecond": []}}}, "topicDispatchRate"),
        ({"replication_clusters": {}}, "replication_clusters"),
        ({"properties": [1]}, "properties"),
        ({"schema_compatibility_strategy": "SOME"}, "schema_compatibility_strategy"),
        ({"autoTopicCreationOverride": {"allowAutoTopicCreation": True}}, "autoTopicCreationOverride"),
        ({"subscription_types_enabled": ["Some"]}, "subscription_types_enabled"),
        ({"deleted": "x"}, "deleted"),
    ],
)
def test_a_namespace_is_not_created_with_what_no_policy_may_be(
    rest: RestClient, body: dict[str, Any], named: str
) -> None:
    """An invalid policy would stay in the metadata and fail every client of the namespace."""
    refused = rest.put("/admin/v2/namespaces/ref/odd", json=body)
    assert refused.status_code == 400
    assert refused.json()["reason"].startswith(f"{named}: ")
    assert rest.get("/admin/v2/namespaces/ref/odd").status_code == 404


def test_a_namespace_may_be_created_with_what_get_shows(rest: RestClient) -> None:
    shown = rest.get("/admin/v2/namespaces/ref/main").json()
    assert rest.put("/admin/v2/namespaces/ref/copy", json=shown).status_code == 204
    assert rest.get("/admin/v2/namespaces/ref/copy").json() == shown


def test_a_namespace_may_be_created_with_what_an_old_pulsar_shows(rest: RestClient) -> None:
    """Before 2.7, a limit below 0 stood for none; Apache Pulsar still takes it, and uses its own setting."""
    limits = ("max_consumers_per_subscription", "max_consumers_per_topic", "max_producers_per_topic",
              "max_subscriptions_per_topic", "max_topics_per_namespace", "max_unacked_messages_per_consumer",
              "max_unacked_messages_per_subscription")  # fmt: skip
    assert rest.put("/admin/v2/namespaces/ref/old", json=dict.fromkeys(limits, -1)).status_code == 204
    assert not set(limits) & set(rest.get("/admin/v2/namespaces/ref/old").json())
    refused = rest.put("/admin/v2/namespaces/ref/older", json={"compaction_threshold": -1})
    assert refused.status_code == 400


def test_a_namespace_may_be_created_with_all_that_the_go_client_sends(rest: RestClient) -> None:
    """``pulsarctl namespaces create`` sends every member of its policies, and an empty text for no group."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("bundles", "persistence", "retention_policies", "deduplicationEnabled", "message_ttl_in_seconds",
         "max_producers_per_topic", "max_consumers_per_topic", "max_consumers_per_subscription", "compaction_threshold",
         "offload_deletion_lag_ms", "autoTopicCreationOverride", "is_allow_auto_update_schema")
    )  # fmt: skip
    nothing |= {
        name: {}
        for name in ("latency_stats_sample_rate", "backlog_quota_map", "topicDispatchRate", "subscriptionDispatchRate",
                     "replicatorDispatchRate", "publishMaxMessageRate", "clusterSubscribeRate")
    }  # fmt: skip
    nothing |= {
        "schema_validation_enforced": False, "deleted": False, "encryption_required": False, "offload_threshold": -1,
        "antiAffinityGroup": "", "replication_clusters": [], "schema_auto_update_compatibility_strategy": "Full",
        "schema_compatibility_strategy": "UNDEFINED", "subscription_auth_mode": "None",
        "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    }  # fmt: skip
    assert rest.put("/admin/v2/namespaces/ref/go", json=nothing).status_code == 204
    assert rest.get("/admin/v2/namespaces/ref/go/antiAffinity").status_code == 204, "it is in no group"


def test_a_policy_given_with_a_new_namespace_needs_what_setting_it_alone_needs() -> None:
    found = world(Settings(authorizationEnabled=True, superUserRoles="root"))
    at_once(found.resources.tenants.update("ref", {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}))
    admin, root = found.rest.as_caller("admin"), found.rest.as_caller("root")
    delayed = {"delayed_delivery_policies": {"active": False, "tickTime": 1000, "maxDeliveryDelayInMillis": 0}}
    refused = admin.put("/admin/v2/namespaces/ref/new", json=delayed)
    assert (refused.status_code, refused.json()["reason"]) == (401, "This operation requires super-user access")
    assert admin.get("/admin/v2/namespaces/ref").json() == ["ref/main"], "nothing is done"
    others = {"retention_policies": {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}, "encryption_required": True}
    assert admin.put("/admin/v2/namespaces/ref/new", json=others).status_code == 204
    assert root.put("/admin/v2/namespaces/ref/newer", json=delayed).status_code == 204
