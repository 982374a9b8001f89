"""Tenants by name (rule 11.2.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magnetar.metadata.clusters import GLOBAL, Clusters
from magnetar.metadata.collection import Collection
from magnetar.metadata.store import MetadataStore
from magnetar.model.errors import ConflictError, NotFoundError, PreconditionFailedError
from magnetar.model.names import is_valid_entity
from magnetar.model.policies import Json, JsonObject


class Tenants:
    """Who owns namespaces. The order of the checks is Pulsar's."""

    def __init__(self, store: MetadataStore, clusters: Clusters) -> None:
        self.changed: Callable[[str], None] = _nothing
        """Called after each change of a tenant, made here or elsewhere."""
        self._records = Collection(store, "/tenants", 1, lambda key: self.changed(key[0]))
        self._clusters = clusters
        self.max_tenants = 0
        """0: without limit."""

    def names(self) -> list[str]:
        return [key[0] for key in self._records.below()]

    def exists(self, name: str) -> bool:
        return (name,) in self._records

    def find(self, name: str) -> JsonObject | None:
        """Return the tenant, not to be changed; ``None`` if there is no such tenant."""
        return self._records.get(name)

    def get(self, name: str) -> JsonObject:
        """Raises NotFoundError."""
        found = self._records.get(name)
        if found is None:
            raise NotFoundError("Tenant does not exist")
        return found

    async def create(self, name: str, info: JsonObject | None) -> None:
        """Raises PreconditionFailedError or ConflictError."""
        if info is None:
            raise PreconditionFailedError("TenantInfo is null")
        if not is_valid_entity(name):
            raise PreconditionFailedError("Tenant name is not valid")
        checked = self._checked(info)
        if self.max_tenants and len(self.names()) >= self.max_tenants:
            raise PreconditionFailedError("Exceed the maximum number of tenants")
        await self._records.create((name,), checked, "Tenant already exist")

    async def ensure(self, name: str, cluster: str, admin_roles: Sequence[str] = ()) -> None:
        """Make it exist, whatever the limit; an existing one stays as it is."""
        if (name,) not in self._records:
            made = self._checked({"adminRoles": [*admin_roles], "allowedClusters": [cluster]})
            await self._records.change((name,), lambda there: there or made)

    async def update(self, name: str, info: JsonObject | None) -> None:
        """Raises PreconditionFailedError or NotFoundError."""
        if info is None:
            raise PreconditionFailedError("TenantInfo is null")
        checked = self._checked(info)

        def replaced(there: JsonObject | None) -> JsonObject:
            if there is None:
                raise NotFoundError(f"Tenant {name} not found")
            return checked

        await self._records.change((name,), replaced)

    async def delete(self, name: str, has_namespaces: bool) -> None:
        """Raises NotFoundError or ConflictError."""
        if (name,) not in self._records:
            raise NotFoundError("Tenant doesn't exist")
        if has_namespaces:
            raise ConflictError("The tenant still has active namespaces")
        await self._records.change((name,), lambda _: None)

    def _checked(self, info: JsonObject) -> JsonObject:
        clusters = _texts(info.get("allowedClusters"))
        roles = _texts(info.get("adminRoles"))
        if not clusters or any(not name.strip() for name in clusters):
            raise PreconditionFailedError("Clusters cannot be empty or blank")
        if not all(name == GLOBAL or self._clusters.exists(name) for name in clusters):
            raise PreconditionFailedError("Clusters do not exist")
        if any(not role or role != role.strip() for role in roles):
            raise PreconditionFailedError("AdminRoles contains whitespace in the beginning or end.")
        return {"adminRoles": [*roles], "allowedClusters": [*clusters]}


def _nothing(tenant: str) -> None: ...


def _texts(value: Json) -> list[str]:
    """A JSON list as distinct texts in order; anything else is none."""
    if not isinstance(value, list):
        return []
    return list(dict.fromkeys(item for item in value if isinstance(item, str)))
