"""What the metadata and the settings say about roles: the facts that the rules judge by.

Grants stand in the records that Apache Pulsar keeps them in, and are read there: the ``adminRoles`` of a tenant, and
``auth_policies`` with ``subscription_auth_mode`` among the policies of a namespace. Nothing is copied, so a change
holds for the next question; only the patterns of a namespace's roles are remembered, as long as its record is the
same. Records come from REST and from files: whatever has another shape than it should grants nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from magnetar.config.settings import Settings
from magnetar.metadata.namespaces import Namespaces
from magnetar.metadata.tenants import Tenants
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json, JsonObject

PATTERNS_REMEMBERED: Final = 1024
"""Namespaces whose patterns are remembered, at most."""
_NOTHING: Final[Mapping[str, Json]] = {}


class NamespaceGrants:
    """The grants of one namespace, of its topics and of its subscriptions."""

    __slots__ = ("_granted", "_policies", "patterns")

    def __init__(self, policies: JsonObject, patterns: tuple[str, ...] = ()) -> None:
        self._policies = policies
        self._granted = _mapping(policies.get("auth_policies"))
        self.patterns = patterns
        """Roles of the namespace with a ``*`` at one end; empty unless wildcards are allowed."""

    def _part(self, name: str) -> Mapping[str, Json]:
        return _mapping(self._granted.get(name))

    def actions(self, role: str) -> Sequence[Json]:
        """What the role may do in the whole namespace: ``produce``, ``consume``, ``functions`` and so on."""
        return _list(self._part("namespace_auth").get(role))

    def topic_roles(self, topic: str) -> Mapping[str, Json]:
        """Roles and their actions on one topic by its full name."""
        return _mapping(self._part("destination_auth").get(topic))

    def topic_actions(self, topic: str, role: str) -> Sequence[Json]:
        """What the role may do on that topic, beside what the namespace grants it."""
        return _list(self.topic_roles(topic).get(role))

    def subscription_roles(self, subscription: str) -> Sequence[Json] | None:
        """Roles that a subscription of this name is reserved for, in every topic; ``None``: for nobody."""
        roles = self._part("subscription_auth_roles").get(subscription)
        if roles is None or roles == []:
            return None
        return _list(roles)

    @property
    def prefix_mode(self) -> bool:
        """Whether the name of a subscription must begin with the role (``subscription_auth_mode``)."""
        return self._policies.get("subscription_auth_mode") not in (None, "None")

    def namespace_roles(self) -> Mapping[str, Json]:
        """Roles and their actions in the whole namespace."""
        return self._part("namespace_auth")


class Grants:
    """All facts about roles of one broker; reading them never waits."""

    def __init__(self, tenants: Tenants, namespaces: Namespaces, settings: Settings) -> None:
        self._tenants = tenants
        self._namespaces = namespaces
        self.cluster: str = settings.clusterName
        self.superusers: frozenset[str] = frozenset(settings.super_user_roles)
        self.proxies: frozenset[str] = frozenset(settings.proxy_roles)
        """Roles that must name an original principal, whose own grants count beside theirs (rule 12.13)."""
        self.wildcards: bool = settings.authorizationAllowWildcardsMatching
        self._patterns: dict[NamespaceName, tuple[JsonObject, tuple[str, ...]]] = {}

    def tenant_admins(self, tenant: str) -> Sequence[Json] | None:
        """Administrators of a tenant; ``None`` if there is no such tenant."""
        found = self._tenants.find(tenant)
        return None if found is None else _list(found.get("adminRoles"))

    def allowed_clusters(self, tenant: str) -> Sequence[Json]:
        """Clusters of a tenant; none if there is no such tenant."""
        found = self._tenants.find(tenant)
        return () if found is None else _list(found.get("allowedClusters"))

    def namespace(self, name: NamespaceName) -> NamespaceGrants | None:
        """Grants of a namespace; ``None`` if there is no such namespace, or one of the legacy form."""
        policies = self._namespaces.find(name)
        if policies is None:
            self._patterns.pop(name, None)
            return None
        return NamespaceGrants(policies, self._patterns_of(name, policies) if self.wildcards else ())

    def _patterns_of(self, name: NamespaceName, policies: JsonObject) -> tuple[str, ...]:
        known = self._patterns.get(name)
        if known is not None and known[0] is policies:
            return known[1]
        found = tuple(patterns_in(NamespaceGrants(policies).namespace_roles()))
        if len(self._patterns) >= PATTERNS_REMEMBERED:
            self._patterns.pop(next(iter(self._patterns)))
        self._patterns[name] = policies, found
        return found


def patterns_in(roles: Mapping[str, Json]) -> Iterator[str]:
    """Yield the roles that stand for several: ``*suffix`` and ``prefix*``."""
    return (role for role in roles if role.startswith("*") or role.endswith("*"))


def fits(pattern: str, role: str) -> bool:
    """Whether a role fits ``prefix*`` or ``*suffix``; a second ``*`` stands for itself."""
    return (pattern.endswith("*") and role.startswith(pattern[:-1])) or (
        pattern.startswith("*") and role.endswith(pattern[1:])
    )


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else _NOTHING


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()
