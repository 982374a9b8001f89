"""An authorizer over tenants, namespaces and grants in memory."""

from __future__ import annotations

from collections.abc import Mapping

from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.grants import Grants
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.policies import JsonObject
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once


def granted(
    settings: Settings, admins: Mapping[str, str], namespaces: Mapping[str, JsonObject]
) -> tuple[Resources, Authorizer]:
    """Tenants with the administrator of each, and namespaces (``tenant/name``) with their ``auth_policies``."""
    resources = Resources(MemoryMetadataStore(), settings)
    at_once(resources.ensure_defaults())
    for tenant, admin in admins.items():
        at_once(resources.tenants.create(tenant, {"adminRoles": [admin], "allowedClusters": ["standalone"]}))
    for namespace, grants in namespaces.items():
        tenant, _, name = namespace.partition("/")
        at_once(resources.namespaces.create(tenant, name, {"auth_policies": grants}))
    return resources, Authorizer(Grants(resources.tenants, resources.namespaces, settings))
