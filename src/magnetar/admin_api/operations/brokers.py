"""Brokers, what they tell of themselves, and the groups and quotas that they share."""

from __future__ import annotations

from typing import Any, Final, Literal

from magnetar.admin_api.models.clusters import BackupRequest, BrokerBackup, BrokerInfo
from magnetar.admin_api.models.placement import (
    BundleOwnership,
    BundleQuota,
    InternalConfiguration,
    LoadReport,
    MetricGroup,
    ResourceGroupRates,
)
from magnetar.admin_api.operation import MetricsText, Operation, Parameter, PlainText

_ALL: Final = "/admin/v2/brokers"
_STATS: Final = "/admin/v2/broker-stats"
_GROUPS: Final = "/admin/v2/resourcegroups"
_GROUP: Final = _GROUPS + "/{resourcegroup}"
_QUOTAS: Final = "/admin/v2/resource-quotas"
_BUNDLE: Final = _QUOTAS + "/{tenant}/{namespace}/{bundle}"
_QUOTA: Final = {"msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 100000.0, "bandwidthOut": 300000.0,
                 "memory": 80.0, "dynamic": True}  # fmt: skip
_NO_GROUP: Final = {404: "ResourceGroup does not exist"}
_TOPIC_VERSION: Final = Parameter(
    "topicVersion", Literal["V1", "V2"], "Which heartbeat topic is used; V2 has no cluster in its name.", "V1"
)

BROKERS: Final = (
    Operation("brokers.list", "GET", _ALL, "List the brokers", answer=list[str]),
    Operation(
        "brokers.list_active", "GET", _ALL + "/{cluster}", "List the brokers of a cluster", answer=list[str]
    ),
    Operation(
        "brokers.health", "GET", _ALL + "/health", "Send a message through the broker", answer=PlainText,
        query=(_TOPIC_VERSION,), description="Answers ok when a message has been stored and read again.",
        errors={404: "topicVersion is not one of V1, V2", 503: "The broker does not serve yet"},
    ),
    Operation("brokers.ready", "GET", _ALL + "/ready", "Say whether the broker serves", answer=PlainText),
    Operation(
        "brokers.version", "GET", _ALL + "/version", "Name the version of Apache Pulsar that is followed",
        answer=PlainText,
    ),
    Operation("brokers.leader", "GET", _ALL + "/leaderBroker", "Name the leader of the brokers", answer=BrokerInfo),
    Operation(
        "brokers.runtime_configuration", "GET", _ALL + "/configuration/runtime", "Show the settings in effect",
        answer=dict[str, str | None], description="Secrets are left out.",
    ),
    Operation(
        "brokers.internal_configuration", "GET", _ALL + "/internal-configuration", "Show where metadata are kept",
        answer=InternalConfiguration,
    ),
    Operation(
        "brokers.list_dynamic_configuration_names", "GET", _ALL + "/configuration", "List the settings that may change",
        answer=list[str],
    ),
    Operation(
        "brokers.get_dynamic_configuration", "GET", _ALL + "/configuration/values",
        "Show the settings that were changed", answer=dict[str, str],
    ),
    Operation(
        "brokers.set_dynamic_configuration", "POST", _ALL + "/configuration/{configName}/{configValue}",
        "Change a setting", success=200, errors={412: "It is not dynamic, or the value is not valid"},
    ),
    Operation(
        "brokers.delete_dynamic_configuration", "DELETE", _ALL + "/configuration/{configName}",
        "Take back the change of a setting", success=200, errors={412: "It is not dynamic"},
    ),
    Operation(
        "brokers.check_backlog_quotas", "GET", _ALL + "/backlog-quota-check", "Enforce all backlog quotas now"
    ),
    Operation(
        "brokers.start_backup", "POST", _ALL + "/backup", "Begin a backup", body=BackupRequest, answer=BrokerBackup,
        success=202, example={"name": "monday"}, own=True,
        description="Answered when its moment has come: what was receipted before is in it. It is written on.",
        errors={
            400: "The name is not valid", 409: "Another is being written, or the name is taken",
            412: "backupDirectory is not set or not there", 500: "The disk refuses", 501: "The store is elsewhere",
        },
    ),
    Operation(
        "brokers.get_backup", "GET", _ALL + "/backup", "Show how far a backup is", answer=BrokerBackup, own=True,
        errors={404: "None was begun since the start", 501: "The store is elsewhere"},
    ),
    Operation(
        "brokers.shutdown", "POST", _ALL + "/shutdown", "Stop the broker", success=200,
        query=(
            Parameter("maxConcurrentUnloadPerSec", int, "Of several brokers: topics handed over a second.", 0),
            Parameter("forcedTerminateTopic", bool, "Of several brokers: hand over by force.", True),
        ),
    ),
    Operation(
        "brokers.get_owned_namespaces", "GET", _ALL + "/{clusterName}/{brokerId}/ownedNamespaces",
        "Show the bundles that a broker serves", answer=dict[str, BundleOwnership],
        errors={404: "There is no such broker"},
    ),
    Operation(
        "brokers.status", "GET", "/status.html", "Say whether the broker takes part, for load balancers",
        answer=PlainText, errors={404: "There is no file at statusFilePath"},
    ),
    Operation(
        "broker_stats.get_metrics", "GET", _STATS + "/metrics", "Show metrics as JSON", answer=list[MetricGroup]
    ),
    Operation(
        "broker_stats.get_topics", "GET", _STATS + "/topics", "Show statistics of all loaded topics",
        answer=dict[str, dict[str, dict[str, dict[str, Any]]]],
        description="By namespace, bundle, domain and topic.",
    ),
    Operation(
        "broker_stats.get_load_report", "GET", _STATS + "/load-report", "Show how much the broker has to do",
        answer=LoadReport,
    ),
    Operation(
        "broker_stats.get_broker_resource_availability", "GET",
        _STATS + "/broker-resource-availability/{tenant}/{namespace}", "Show what brokers could take",
        answer=dict[str, Any], errors={409: "Not with this load manager"},
    ),
    Operation(
        "resource_groups.list", "GET", _GROUPS, "List the resource groups", answer=list[str]
    ),
    Operation(
        "resource_groups.get", "GET", _GROUP, "Show a resource group", answer=ResourceGroupRates, errors=_NO_GROUP
    ),
    Operation(
        "resource_groups.put", "PUT", _GROUP, "Create or change a resource group", body=ResourceGroupRates,
        example={"publishRateInMsgs": 1000},
    ),
    Operation(
        "resource_groups.delete", "DELETE", _GROUP, "Delete a resource group",
        errors={**_NO_GROUP, 412: "ResourceGroup is in use"},
    ),
    Operation(
        "resource_quotas.get_default", "GET", _QUOTAS, "Show the quota of bundles", answer=BundleQuota
    ),
    Operation(
        "resource_quotas.set_default", "POST", _QUOTAS, "Set the quota of bundles", body=BundleQuota, example=_QUOTA
    ),
    Operation("resource_quotas.get", "GET", _BUNDLE, "Show the quota of a bundle", answer=BundleQuota),
    Operation(
        "resource_quotas.set", "POST", _BUNDLE, "Set the quota of a bundle", body=BundleQuota, example=_QUOTA
    ),
    Operation("resource_quotas.reset", "DELETE", _BUNDLE, "Remove the quota of a bundle"),
    Operation(
        "metrics.prometheus", "GET", "/metrics", "Show metrics for Prometheus", answer=MetricsText,
        description="In the text format 0.0.4, with Apache Pulsar's names.",
    ),
)  # fmt: skip
"""The operations of this group."""
