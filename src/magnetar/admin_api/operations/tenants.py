"""Tenants."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.clusters import TenantInfo
from magnetar.admin_api.operation import Operation, Parameter

_ALL: Final = "/admin/v2/tenants"
_ONE: Final = "/admin/v2/tenants/{tenant}"
_INFO: Final = {"adminRoles": ["orders-admin"], "allowedClusters": ["standalone"]}
_FORCE: Final = Parameter("force", bool, "Delete its namespaces and their topics as well.", False)

TENANTS: Final = (
    Operation("tenants.list", "GET", _ALL, "List the tenants", answer=list[str]),
    Operation(
        "tenants.get", "GET", _ONE, "Show a tenant", answer=TenantInfo, errors={404: "Tenant does not exist"}
    ),
    Operation(
        "tenants.create", "PUT", _ONE, "Create a tenant", body=TenantInfo, example=_INFO,
        errors={409: "Tenant already exist", 412: "Clusters do not exist, or the name is not valid"},
    ),
    Operation(
        "tenants.update", "POST", _ONE, "Replace the roles and clusters of a tenant", body=TenantInfo, example=_INFO,
        errors={404: "Tenant does not exist", 412: "Clusters do not exist"},
    ),
    Operation(
        "tenants.delete", "DELETE", _ONE, "Delete a tenant", query=(_FORCE,),
        errors={404: "Tenant does not exist", 405: "Broker doesn't allow forced deletion of tenants",
                409: "The tenant still has active namespaces"},
    ),
)  # fmt: skip
"""The operations of this group."""
