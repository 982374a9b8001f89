"""What the metadata and the settings say about roles: the facts that the rules judge by.

Grants stand in the records that Apache Pulsar keeps them in, and are read there: the ``adminRoles`` of a tenant, and
``auth_policies`` with ``subscription_auth_mode`` among the policies of a namespace. Nothing is copied, so a change
holds for the next question; only what makes a question cheap is remembered, sets of roles and patterns, as long as the
record is the same. So an answer takes as long for a hundred thousand roles as for one. Records come from REST and from
files: whatever has another shape than it should grants nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from magnetar.config.settings import Settings
from magnetar.metadata.namespaces import Namespaces
from magnetar.metadata.tenants import Tenants
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json, JsonObject

REMEMBERED: Final = 1024
"""Namespaces, and tenants, whose sets and patterns are remembered, at most."""
_NOTHING: Final[Mapping[str, Json]] = {}


class Roles(tuple[Json, ...]):
    """A list of roles that knows quickly whether a role is in it."""

    def __init__(self, listed: Sequence[Json]) -> None:
        self._named = frozenset(one for one in listed if isinstance(one, str))

    @override
    def __contains__(self, role: object) -> bool:
        return role in self._named


class RolePatterns:
    """The roles among others that stand for several: ``*suffix`` and ``prefix*``; a second ``*`` stands for itself.

    What a role fits is found by the lengths there are, so it takes as long as the role is, and not as there are many.
    """

    __slots__ = ("_prefix_lengths", "_prefixes", "_suffix_lengths", "_suffixes")

    def __init__(self, roles: Iterable[str]) -> None:
        patterns = [role for role in roles if role.startswith("*") or role.endswith("*")]
        self._prefixes = frozenset(one[:-1] for one in patterns if one.endswith("*"))
        self._suffixes = frozenset(one[1:] for one in patterns if one.startswith("*"))
        self._prefix_lengths = sorted(set(map(len, self._prefixes)))
        self._suffix_lengths = sorted(set(map(len, self._suffixes)))

    def fitting(self, role: str) -> Iterator[str]:
        """Yield the patterns that a role fits."""
        for length in self._prefix_lengths:
            if length > len(role):
                break
            if role[:length] in self._prefixes:
                yield role[:length] + "*"
        for length in self._suffix_lengths:
            if length > len(role):
                break
            suffix = role[len(role) - length :]
            if suffix in self._suffixes:
                yield "*" + suffix


class NamespaceGrants:
    """The grants of one namespace, of its topics and of its subscriptions, as one record has them."""

    __slots__ = ("_granted", "_patterns", "_policies", "_reserved", "_topic_patterns")

    def __init__(self, policies: JsonObject) -> None:
        self._policies = policies
        self._granted = _mapping(policies.get("auth_policies"))
        self._patterns: RolePatterns | None = None
        self._topic_patterns: dict[str, RolePatterns] = {}
        self._reserved: dict[str, Roles] = {}

    def still(self, policies: JsonObject) -> bool:
        """Whether these are the grants of that record."""
        return policies is self._policies and _mapping(policies.get("auth_policies")) is self._granted

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
        """Roles that a subscription of this name is reserved for, in every topic; ``None``: for none."""
        roles = self._part("subscription_auth_roles").get(subscription)
        if roles is None or roles == []:
            return None
        found = self._reserved.get(subscription)
        if found is None:
            found = self._reserved[subscription] = Roles(_list(roles))
        return found

    @property
    def prefix_mode(self) -> bool:
        """Whether the name of a subscription must begin with the role (``subscription_auth_mode``)."""
        return self._policies.get("subscription_auth_mode") not in (None, "None")

    def namespace_roles(self) -> Mapping[str, Json]:
        """Roles and their actions in the whole namespace."""
        return self._part("namespace_auth")

    def namespace_patterns(self) -> RolePatterns:
        """The patterns among the roles of the namespace."""
        if self._patterns is None:
            self._patterns = RolePatterns(self.namespace_roles())
        return self._patterns

    def topic_patterns(self, topic: str) -> RolePatterns:
        """The patterns among the roles of one topic by its full name."""
        roles = self.topic_roles(topic)
        if not roles:
            return _NO_PATTERNS
        found = self._topic_patterns.get(topic)
        if found is None:
            found = self._topic_patterns[topic] = RolePatterns(roles)
        return found


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
        self._remembered: dict[NamespaceName, NamespaceGrants] = {}
        self._admins: dict[str, tuple[Json, Roles]] = {}

    def take_superusers(self, roles: Iterable[str]) -> bool:
        """Take the roles of ``superUserRoles``, which may have changed; return whether they differ."""
        before, self.superusers = self.superusers, frozenset(roles)
        return self.superusers != before

    def tenant_admins(self, tenant: str) -> Sequence[Json] | None:
        """Administrators of a tenant; ``None`` if there is no such tenant."""
        found = self._tenants.find(tenant)
        if found is None:
            return None
        listed = found.get("adminRoles")
        known = self._admins.get(tenant)
        if known is None or known[0] is not listed:
            _make_room(self._admins)
            known = self._admins[tenant] = listed, Roles(_list(listed))
        return known[1]

    def allowed_clusters(self, tenant: str) -> Sequence[Json]:
        """Clusters of a tenant; none if there is no such tenant."""
        found = self._tenants.find(tenant)
        return () if found is None else _list(found.get("allowedClusters"))

    def namespace(self, name: NamespaceName) -> NamespaceGrants | None:
        """Grants of a namespace; ``None`` if there is no such namespace, or one of the legacy form."""
        policies = self._namespaces.find(name)
        if policies is None:
            return None
        known = self._remembered.get(name)
        if known is None or not known.still(policies):
            _make_room(self._remembered)
            known = self._remembered[name] = NamespaceGrants(policies)
        return known


def _make_room(remembered: dict[Any, Any]) -> None:
    if len(remembered) >= REMEMBERED:
        remembered.pop(next(iter(remembered)))


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else _NOTHING


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


_NO_PATTERNS: Final = RolePatterns(())
