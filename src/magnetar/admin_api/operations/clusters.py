"""Clusters, and where they put bundles and ledgers."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.clusters import ClusterData
from magnetar.admin_api.models.placement import (
    BookieList,
    BookieRack,
    ClusterMigration,
    ClusterUrl,
    FailureDomain,
    IsolatedBroker,
    NamespaceIsolation,
)
from magnetar.admin_api.operation import Operation, Parameter

_ALL: Final = "/admin/v2/clusters"
_ONE: Final = "/admin/v2/clusters/{cluster}"
_DATA: Final = {"serviceUrl": "http://pulsar.example.com:8080", "brokerServiceUrl": "pulsar://pulsar.example.com:6650"}
_DOMAINS: Final = _ONE + "/failureDomains"
_DOMAIN: Final = _DOMAINS + "/{domainName}"
_ISOLATION: Final = _ONE + "/namespaceIsolationPolicies"
_BOOKIES: Final = "/admin/v2/bookies"
_RACKS: Final = _BOOKIES + "/racks-info"
_NO_DOMAIN: Final = {404: "There is no such cluster, domain or policy", 412: "Cluster does not exist"}
_MISSING: Final = {404: "Cluster does not exist"}

CLUSTERS: Final = (
    Operation("clusters.list", "GET", _ALL, "List the clusters", answer=list[str]),
    Operation("clusters.get", "GET", _ONE, "Show a cluster", answer=ClusterData, errors=_MISSING),
    Operation(
        "clusters.create", "PUT", _ONE, "Create a cluster", body=ClusterData, success=200, example=_DATA,
        errors={409: "Cluster already exists", 412: "Cluster name is not valid"},
    ),
    Operation(
        "clusters.update", "POST", _ONE, "Replace the addresses of a cluster", body=ClusterData, success=200,
        example=_DATA, errors=_MISSING,
    ),
    Operation(
        "clusters.delete", "DELETE", _ONE, "Delete a cluster", errors={**_MISSING, 412: "Cluster is not empty"}
    ),
    Operation(
        "clusters.get_peers", "GET", _ONE + "/peers", "List the peers of a cluster", answer=list[str], unset=200,
        errors=_MISSING,
    ),
    Operation(
        "clusters.set_peers", "POST", _ONE + "/peers", "Set the peers of a cluster", body=list[str],
        example=["standalone"], errors={**_MISSING, 412: "A peer does not exist"},
    ),
    Operation(
        "clusters.get_migration", "GET", _ONE + "/migrate", "Show whether clients of a cluster shall go elsewhere",
        answer=ClusterMigration, errors=_MISSING,
    ),
    Operation(
        "clusters.set_migration", "POST", _ONE + "/migrate", "Set whether clients of a cluster shall go elsewhere",
        query=(Parameter("migrated", bool, "Whether they shall.", False),), body=ClusterUrl, success=200,
        body_required=False, example=_DATA, errors={**_MISSING, 501: "Not for the cluster of this broker"},
    ),
    Operation(
        "clusters.list_failure_domains", "GET", _DOMAINS, "List the failure domains of a cluster",
        answer=dict[str, FailureDomain],
    ),
    Operation(
        "clusters.get_failure_domain", "GET", _DOMAIN, "Show a failure domain", answer=FailureDomain,
        errors=_NO_DOMAIN,
    ),
    Operation(
        "clusters.set_failure_domain", "POST", _DOMAIN, "Set the brokers of a failure domain", body=FailureDomain,
        example={"brokers": ["broker-1:8080"]}, errors={**_NO_DOMAIN, 409: "A broker is in another domain"},
    ),
    Operation(
        "clusters.delete_failure_domain", "DELETE", _DOMAIN, "Delete a failure domain", success=200, errors=_NO_DOMAIN
    ),
    Operation(
        "clusters.list_isolation_policies", "GET", _ISOLATION, "List the isolation policies of a cluster",
        answer=dict[str, NamespaceIsolation], errors=_NO_DOMAIN,
    ),
    Operation(
        "clusters.get_isolation_policy", "GET", _ISOLATION + "/{policyName}", "Show an isolation policy",
        answer=NamespaceIsolation, errors=_NO_DOMAIN,
    ),
    Operation(
        "clusters.set_isolation_policy", "POST", _ISOLATION + "/{policyName}", "Set an isolation policy",
        body=NamespaceIsolation, errors=_NO_DOMAIN,
        example={
            "namespaces": ["orders/.*"], "primary": ["broker-1.*"], "secondary": ["broker-2.*"],
            "auto_failover_policy": {
                "policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"},
            },
        },
    ),
    Operation(
        "clusters.delete_isolation_policy", "DELETE", _ISOLATION + "/{policyName}", "Delete an isolation policy",
        errors=_NO_DOMAIN,
    ),
    Operation(
        "clusters.list_isolated_brokers", "GET", _ISOLATION + "/brokers", "Show what isolation policies say of brokers",
        answer=list[IsolatedBroker], errors=_NO_DOMAIN,
    ),
    Operation(
        "clusters.get_isolated_broker", "GET", _ISOLATION + "/brokers/{broker}",
        "Show what isolation policies say of a broker", answer=IsolatedBroker, errors=_NO_DOMAIN,
    ),
    Operation("bookies.list", "GET", _BOOKIES + "/all", "List the bookies", answer=BookieList),
    Operation(
        "bookies.list_racks", "GET", _RACKS, "List the racks of bookies", answer=dict[str, dict[str, BookieRack]]
    ),
    Operation(
        "bookies.get_rack", "GET", _RACKS + "/{bookie}", "Show the rack of a bookie", answer=BookieRack,
        errors={404: "Bookie rack placement configuration not found"},
    ),
    Operation(
        "bookies.delete_rack", "DELETE", _RACKS + "/{bookie}", "Forget the rack of a bookie",
        errors={404: "Bookie rack placement configuration not found"},
    ),
)  # fmt: skip
"""The operations of this group."""
