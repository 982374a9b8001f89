"""Placement data: what administrators say about where things shall lie, for brokers that share a cluster.

Failure domains group brokers, isolation policies bind namespaces to brokers, resource quotas say what a bundle may
need, a bookie affinity group names bookies for a namespace. One broker has nothing to place: they are kept, checked and
shown, and every broker of a cluster reads the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from magnetar.metadata.collection import Collection, Key
from magnetar.metadata.store import MetadataStore, RecordWrite
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json, JsonObject

RECORD_BYTES_MAX: Final = 1 << 20
"""All failure domains, all isolation policies of a cluster, or all placement data of a namespace, as JSON."""
DEFAULT_QUOTA: Final[JsonObject] = {
    "msgRateIn": 40.0, "msgRateOut": 120.0, "bandwidthIn": 100000.0, "bandwidthOut": 300000.0, "memory": 80.0,
    "dynamic": True,
}  # fmt: skip
"""What a bundle may need unless a quota is set."""
_NONE: Final[JsonObject] = {}


class Placement:
    """One record for each cluster, or namespace, of each sort; read from memory, durable on return of a change."""

    def __init__(self, store: MetadataStore) -> None:
        self._domains = Collection(store, "/failure-domains", 1)
        self._isolation = Collection(store, "/isolation-policies", 1)
        self._namespaces = Collection(store, "/local-policies", 2)
        self._quota = Collection(store, "/resource-quotas", 1)

    def failure_domains(self, cluster: str) -> JsonObject:
        """Failure domains by name, not to be changed."""
        return self._domains.get(cluster) or _NONE

    async def set_failure_domain(
        self, cluster: str, name: str, domain: JsonObject | None, check: Callable[[JsonObject], None]
    ) -> None:
        """Set or, with None, remove one; what ``check`` raises about all of them changes nothing."""

        def changed(before: JsonObject) -> JsonObject:
            check(before)
            return _with(before, name, domain)

        await _change(self._domains, (cluster,), changed)

    def isolation_policies(self, cluster: str) -> JsonObject | None:
        """Isolation policies by name, not to be changed; None for a cluster that never had one."""
        return self._isolation.get(cluster)

    async def change_isolation_policies(self, cluster: str, changed: Callable[[JsonObject], JsonObject]) -> None:
        """Replace them by what ``changed`` makes of them; what it raises changes nothing."""
        await _change(self._isolation, (cluster,), changed)

    def without_cluster(self, cluster: str) -> list[RecordWrite]:
        """The writes that remove all that is said about a cluster."""
        return [write for records in (self._domains, self._isolation) for write in records.replacing((cluster,), None)]

    def bookie_affinity(self, namespace: NamespaceName) -> JsonObject | None:
        """The bookies that a namespace would like best, not to be changed; None: none is set."""
        found = self._of(namespace).get("bookieAffinityGroup")
        return found if isinstance(found, dict) else None

    async def set_bookie_affinity(self, namespace: NamespaceName, group: JsonObject | None) -> None:
        """Set or, with None, remove it."""
        await _change(self._namespaces, _key(namespace), lambda old: _with(old, "bookieAffinityGroup", group))

    def quota(self, namespace: NamespaceName, bundle: str) -> JsonObject | None:
        """The resource quota of one bundle, not to be changed; None: the default counts."""
        found = _quotas(self._of(namespace)).get(bundle)
        return found if isinstance(found, dict) else None

    async def set_quota(self, namespace: NamespaceName, bundle: str, quota: JsonObject | None) -> None:
        """Set or, with None, remove it."""
        await self._change_quotas(namespace, lambda quotas: _with(quotas, bundle, quota))

    def without_quota(self, namespace: NamespaceName, bundle: str) -> list[RecordWrite]:
        """The writes that remove the quota of a bundle that is no more, if there is one."""
        if self.quota(namespace, bundle) is None:
            return []
        record = self._of(namespace)
        left = _with(record, "quotas", _with(_quotas(record), bundle, None) or None)
        return self._namespaces.replacing(_key(namespace), left)

    async def _change_quotas(self, namespace: NamespaceName, changed: Callable[[JsonObject], JsonObject]) -> None:
        await _change(
            self._namespaces, _key(namespace), lambda old: _with(old, "quotas", changed(_quotas(old)) or None)
        )

    def default_quota(self) -> JsonObject:
        """The resource quota of bundles without their own, not to be changed."""
        return self._quota.get("default") or DEFAULT_QUOTA

    async def set_default_quota(self, quota: JsonObject) -> None:
        """Replace it."""
        await self._quota.change(("default",), lambda _: quota)

    def without_namespace(self, namespace: NamespaceName) -> list[RecordWrite]:
        """The writes that remove all that is said about a namespace: one of the same name that is made later must not
        find it."""
        return self._namespaces.replacing(_key(namespace), None)

    def _of(self, namespace: NamespaceName) -> JsonObject:
        return self._namespaces.get(*_key(namespace)) or _NONE


async def _change(records: Collection, key: Key, changed: Callable[[JsonObject], JsonObject]) -> None:
    """Change one record, which must stay below the limit. Raises PreconditionFailedError."""

    def bounded(before: JsonObject | None) -> JsonObject:
        after = changed(before or {})
        if len(json.dumps(after, ensure_ascii=False).encode()) > RECORD_BYTES_MAX:
            raise PreconditionFailedError(
                f"all that is said about {'/'.join(key)} would take more than {RECORD_BYTES_MAX} bytes; remove some"
            )
        return after

    await records.change(key, bounded)


def _with(before: JsonObject, name: str, value: Json) -> JsonObject:
    return {key: one for key, one in {**before, name: value}.items() if one is not None}


def _quotas(record: JsonObject) -> JsonObject:
    found = record.get("quotas")
    return found if isinstance(found, dict) else {}


def _key(namespace: NamespaceName) -> Key:
    return tuple(namespace.text.split("/"))
