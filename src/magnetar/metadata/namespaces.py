"""Namespaces and their policies (rules of 11.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

from magnetar.metadata.collection import Collection
from magnetar.metadata.store import MetadataStore, RecordWrite
from magnetar.metadata.tenants import Tenants
from magnetar.model.errors import ConflictError, ForbiddenError, NotFoundError, PreconditionFailedError
from magnetar.model.names import NamespaceName, TopicName, is_valid_entity
from magnetar.model.policies import (
    POLICY_FIELDS,
    Json,
    JsonObject,
    NamespacePolicies,
    bundles,
    default_policies,
)


class Namespaces:
    """Policies per namespace; legacy names with a cluster are unknown."""

    def __init__(self, store: MetadataStore, tenants: Tenants, cluster: str) -> None:
        self._views: dict[NamespaceName, NamespacePolicies] = {}
        self.changed: Callable[[NamespaceName], None] = _nothing
        """Called after each change of a namespace's policies, made here or elsewhere."""
        self.grants_changed: Callable[[NamespaceName], None] = _nothing
        """Called after that, for what is open by grants of the namespace."""
        self._records = Collection(store, "/namespaces", 2, self._follow)
        self._leaving: Counter[NamespaceName] = Counter()
        self._tenants = tenants
        self._cluster = cluster
        self.bundle_count = 4
        """Of a new namespace that says nothing of it."""
        self.max_per_tenant = 0
        """0: without limit."""

    def _follow(self, key: tuple[str, ...]) -> None:
        name = NamespaceName.parse("/".join(key))
        self._views.pop(name, None)
        self.changed(name)
        self.grants_changed(name)

    def of_tenant(self, tenant: str) -> list[str]:
        """Full names. Raises NotFoundError for an unknown tenant."""
        if not self._tenants.exists(tenant):
            raise NotFoundError("Tenant not found")
        return ["/".join(key) for key in self._records.below(tenant)]

    def all(self) -> list[NamespaceName]:
        return [NamespaceName.parse("/".join(key)) for key in self._records.below()]

    def exists(self, name: NamespaceName) -> bool:
        return _key(name) in self._records

    def takes_topics(self, name: NamespaceName) -> bool:
        """Whether it exists and is not being removed just now."""
        return self.exists(name) and name not in self._leaving

    def find(self, name: NamespaceName) -> JsonObject | None:
        """Return the policies of a namespace, not to be changed; ``None`` if there is no such namespace."""
        return self._records.get(*name.text.split("/"))

    def policies(self, name: NamespaceName) -> JsonObject:
        """Return the policies as REST shows them, not to be changed. Raises NotFoundError."""
        found = self._records.get(*_key(name))
        if found is None:
            raise NotFoundError("Namespace does not exist")
        return found

    def view(self, name: NamespaceName) -> NamespacePolicies:
        """What the broker acts on; the same object until the policies change. Raises NotFoundError."""
        found = self._views.get(name)
        if found is None:
            found = self._views[name] = NamespacePolicies(self.policies(name))
        return found

    async def create(self, tenant: str, local_name: str, wanted: JsonObject | None = None) -> NamespaceName:
        """Create it with default policies, overlaid by the known fields of ``wanted``; the tenant is checked first."""
        if not is_valid_entity(local_name):
            raise PreconditionFailedError("Namespace name is not valid")
        allowed = _texts(self._tenants.get(tenant)["allowedClusters"])
        policies = self._initial(wanted or {})
        for cluster in _texts(policies["replication_clusters"]):
            if cluster not in allowed:
                raise ForbiddenError(
                    f"Cluster [{cluster}] is not in the list of allowed clusters list for tenant [{tenant}]"
                )
        if self.max_per_tenant and len(self.of_tenant(tenant)) >= self.max_per_tenant:
            raise PreconditionFailedError(f"Exceed the maximum number of namespace in tenant :{tenant}")
        name = NamespaceName.parse(f"{tenant}/{local_name}")
        await self._records.create(_key(name), policies, "Namespace already exists")
        return name

    async def update(self, name: NamespaceName, **changes: Json) -> None:
        """Set policies by their JSON names; ``None`` removes one. Raises NotFoundError."""
        await self.change(name, lambda _: changes)

    async def change(self, name: NamespaceName, changes: Callable[[JsonObject], Mapping[str, Json]]) -> None:
        """Set the policies that ``changes`` makes of those that hold; ``None`` removes one. Raises NotFoundError.

        ``changes`` is called again when another writer came first, and what it raises changes nothing.
        """

        def merged(_: JsonObject | None) -> JsonObject:
            before = self.policies(name)
            both = {**before, **changes(before)}
            return {key: value for key, value in both.items() if value is not None}

        await self._records.change(_key(name), merged)

    def replacing(self, name: NamespaceName, changes: Mapping[str, Json]) -> list[RecordWrite]:
        """The write that sets policies as :meth:`update` does. Raises NotFoundError."""
        both = {**self.policies(name), **changes}
        return self._records.replacing(_key(name), {key: value for key, value in both.items() if value is not None})

    def without(self, name: NamespaceName) -> list[RecordWrite]:
        """The write that removes the namespace, if there is one."""
        return self._records.replacing(_key(name), None)

    def without_grants(self, topics: Sequence[TopicName]) -> list[RecordWrite]:
        """The write that revokes everything that was granted on ``topics`` of one namespace, which are being deleted.

        Topics of the same names that are made later must not find them.
        """
        namespace = next((topic.namespace for topic in topics), None)
        if namespace is None or not self.exists(namespace):
            return []
        policies, gone = self.policies(namespace), {topic.fqn for topic in topics}
        if gone.isdisjoint(_grants_on_topics(policies)):
            return []
        return self.replacing(namespace, _without_grants(policies, gone))

    @contextmanager
    def removal(self, name: NamespaceName) -> Iterator[None]:
        """Let nothing new be made in a namespace while it is removed with all that is in it.

        What came in between would be left without a namespace, and then belong to the next one of that name.
        """
        self._leaving[name] += 1
        try:
            yield
        finally:
            self._leaving[name] -= 1
            self._leaving += Counter()  # without those that are not leaving any more

    async def delete(self, name: NamespaceName, has_topics: bool) -> None:
        """Raises NotFoundError or ConflictError."""
        if not self.exists(name):
            raise NotFoundError(f"Namespace {name.text} does not exist.")
        if has_topics:
            raise ConflictError("Cannot delete non empty namespace")
        await self._records.change(_key(name), lambda _: None)

    def _initial(self, wanted: JsonObject) -> JsonObject:
        policies = default_policies(self._cluster, self.bundle_count)
        kept = {key: value for key, value in wanted.items() if key in POLICY_FIELDS and value is not None}
        if not kept.get("replication_clusters"):
            kept.pop("replication_clusters", None)
        if "bundles" in kept:
            kept["bundles"] = self._bundles(kept["bundles"])
        return {**policies, **kept}

    def _bundles(self, wanted: Json) -> JsonObject:
        if isinstance(wanted, dict):
            given = _texts(wanted.get("boundaries"))
            if len(given) > 1:
                return {"boundaries": [*given], "numBundles": len(given) - 1}
            count = wanted.get("numBundles")
            if isinstance(count, int) and 0 < count <= 1 << 16:
                return bundles(count)
        return bundles(self.bundle_count)


def _nothing(namespace: NamespaceName) -> None: ...


def _grants_on_topics(policies: JsonObject) -> JsonObject:
    granted = policies.get("auth_policies")
    found = granted.get("destination_auth") if isinstance(granted, dict) else None
    return found if isinstance(found, dict) else {}


def _without_grants(policies: JsonObject, topics: Set[str]) -> JsonObject:
    left = {name: found for name, found in _grants_on_topics(policies).items() if name not in topics}
    granted = policies.get("auth_policies")
    return {"auth_policies": {**(granted if isinstance(granted, dict) else {}), "destination_auth": left}}


def _key(name: NamespaceName) -> tuple[str, ...]:
    return tuple(name.text.split("/"))


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
