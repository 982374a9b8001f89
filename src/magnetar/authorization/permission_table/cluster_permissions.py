"""Rows of the permission table for what the whole cluster has: brokers, clusters, tenants, quotas, bookies."""

from __future__ import annotations

from magnetar.authorization.operations import TenantOperation
from magnetar.authorization.permission_table.needs import Route, RoutePermission, anyone, in_methods, superuser, tenant


def cluster_permissions() -> dict[Route, RoutePermission]:
    """What each route of this group needs."""
    brokers, clusters, tenants = "/admin/v2/brokers", "/admin/v2/clusters", "/admin/v2/tenants"
    change = superuser("change clusters")
    return {
        ("GET", brokers): superuser("list brokers"),
        ("GET", brokers + "/{cluster}"): superuser("list brokers"),
        ("GET", brokers + "/health"): superuser("check the health of the broker"),
        ("GET", brokers + "/ready"): anyone(),
        ("GET", brokers + "/version"): anyone(),
        ("GET", brokers + "/leaderBroker"): superuser("name the leader of the brokers"),
        ("GET", brokers + "/configuration/runtime"): superuser("show the configuration"),
        ("GET", brokers + "/configuration"): superuser("list the settings that may change while brokers run"),
        ("GET", brokers + "/configuration/values"): superuser("show the settings that were changed while brokers ran"),
        ("POST", brokers + "/configuration/{configName}/{configValue}"): superuser(
            "change a setting of the running brokers"
        ),
        ("DELETE", brokers + "/configuration/{configName}"): superuser("forget a change of a setting"),
        ("GET", clusters): anyone(),
        **in_methods(clusters + "/{cluster}", GET=superuser("show clusters"), PUT=change, POST=change, DELETE=change),
        ("GET", tenants): superuser("list tenants"),
        **in_methods(
            tenants + "/{tenant}",
            GET=tenant(TenantOperation.GET_TENANT),
            PUT=superuser("create tenants"),
            POST=tenant(TenantOperation.UPDATE_TENANT),
            DELETE=tenant(TenantOperation.DELETE_TENANT),
        ),
    }
