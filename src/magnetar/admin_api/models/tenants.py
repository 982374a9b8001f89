"""Tenants."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel


class TenantInfo(ApiModel):
    """A tenant: who administers it, and in which clusters it may have topics."""

    admin_roles: list[str] = []
    """Roles that administer the tenant."""
    allowed_clusters: list[str] = []
    """Clusters that its namespaces may be replicated to; a new tenant needs at least one."""
