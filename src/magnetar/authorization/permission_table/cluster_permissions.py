"""Rows of the permission table for what the whole cluster has: brokers, clusters, tenants, quotas, groups, bookies."""

from __future__ import annotations

from magnetar.authorization.operations import TenantOperation
from magnetar.authorization.permission_table.needs import Route, RoutePermission, anyone, in_methods, superuser, tenant

_STATS = (
    "/admin/v2/broker-stats/metrics",
    "/admin/v2/broker-stats/topics",
    "/admin/v2/broker-stats/load-report",
    "/admin/v2/broker-stats/broker-resource-availability/{tenant}/{namespace}",
)


def cluster_permissions() -> dict[Route, RoutePermission]:
    """What each route of this group needs."""
    brokers, clusters, tenants = "/admin/v2/brokers", "/admin/v2/clusters", "/admin/v2/tenants"
    groups = "/admin/v2/resourcegroups"
    change = superuser("change clusters")
    domains, policies = clusters + "/{cluster}/failureDomains", clusters + "/{cluster}/namespaceIsolationPolicies"
    quotas, bookies = "/admin/v2/resource-quotas", "/admin/v2/bookies"
    show, plan, stored = superuser("show clusters"), superuser("plan where things lie"), superuser("see bookies")
    return {
        ("GET", brokers): superuser("list brokers"),
        ("GET", brokers + "/{cluster}"): superuser("list brokers"),
        ("GET", brokers + "/health"): superuser("check the health of the broker"),
        ("GET", brokers + "/ready"): anyone(),
        ("GET", brokers + "/version"): anyone(),
        ("GET", brokers + "/leaderBroker"): superuser("name the leader of the brokers"),
        ("GET", brokers + "/{clusterName}/{brokerId}/ownedNamespaces"): superuser("show what a broker serves"),
        ("GET", brokers + "/internal-configuration"): superuser("show the configuration"),
        ("GET", brokers + "/backlog-quota-check"): superuser("check backlog quotas"),
        **in_methods(brokers + "/backup", GET=superuser("show the state of a backup"), POST=superuser("back up")),
        ("POST", brokers + "/shutdown"): superuser("stop the broker"),
        ("GET", "/status.html"): anyone("no login"),
        ("GET", brokers + "/configuration/runtime"): superuser("show the configuration"),
        ("GET", brokers + "/configuration"): superuser("list the settings that may change while brokers run"),
        ("GET", brokers + "/configuration/values"): superuser("show the settings that were changed while brokers ran"),
        ("POST", brokers + "/configuration/{configName}/{configValue}"): superuser(
            "change a setting of the running brokers"
        ),
        ("DELETE", brokers + "/configuration/{configName}"): superuser("forget a change of a setting"),
        **{("GET", path): superuser("show the statistics of the broker") for path in _STATS},
        ("GET", clusters): anyone(),
        **in_methods(clusters + "/{cluster}", GET=show, PUT=change, POST=change, DELETE=change),
        **in_methods(clusters + "/{cluster}/peers", GET=show, POST=change),
        **in_methods(clusters + "/{cluster}/migrate", GET=show, POST=change),
        ("GET", domains): show,
        **in_methods(domains + "/{domainName}", GET=show, POST=plan, DELETE=plan),
        ("GET", policies): show,
        ("GET", policies + "/brokers"): show,
        ("GET", policies + "/brokers/{broker}"): show,
        **in_methods(policies + "/{policyName}", GET=show, POST=plan, DELETE=plan),
        **in_methods(quotas, GET=plan, POST=plan),
        **in_methods(quotas + "/{tenant}/{namespace}/{bundle}", GET=plan, POST=plan, DELETE=plan),
        ("GET", bookies + "/all"): stored,
        ("GET", bookies + "/racks-info"): stored,
        **in_methods(bookies + "/racks-info/{bookie}", GET=stored, DELETE=plan),
        ("GET", groups): superuser("list resource groups"),
        **in_methods(
            groups + "/{resourcegroup}",
            GET=superuser("show resource groups"),
            PUT=superuser("change resource groups"),
            DELETE=superuser("change resource groups"),
        ),
        ("GET", tenants): superuser("list tenants"),
        **in_methods(
            tenants + "/{tenant}",
            GET=tenant(TenantOperation.GET_TENANT),
            PUT=superuser("create tenants"),
            POST=tenant(TenantOperation.UPDATE_TENANT),
            DELETE=tenant(TenantOperation.DELETE_TENANT),
        ),
    }
