"""Clusters by name (rule 11.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from magnetar.metadata.collection import Collection, change_together
from magnetar.metadata.store import MetadataStore, RecordWrite
from magnetar.model.errors import InvalidValueError, NotFoundError, PreconditionFailedError
from magnetar.model.names import is_valid_entity
from magnetar.model.policies import CLUSTER_FIELDS, JsonObject

_URLS: Final = {
    "serviceUrl": ("http", "http://pulsar.example.com:8080"),
    "serviceUrlTls": ("https", "https://pulsar.example.com:8443"),
    "brokerServiceUrl": ("pulsar", "pulsar://pulsar.example.com:6650"),
    "brokerServiceUrlTls": ("pulsar+ssl", "pulsar+ssl://pulsar.example.com:6651"),
}
_ILLEGAL: Final = {
    "serviceUrl": "Illegal service url, example: ",
    "serviceUrlTls": "Illegal service tls url, example: ",
    "brokerServiceUrl": "Illegal broker service url, example: ",
    "brokerServiceUrlTls": "Illegal broker service tls url, example: ",
}
GLOBAL: Final = "global"
"""The cluster of the old interface's global namespaces: each tenant may name it, and it is in no list."""
_NEVER: Final = object()
_OF_OWN: Final[Mapping[str, str]] = {
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}
"""Fields that Apache Pulsar writes for its own cluster, and shows for another cluster only if they were set."""
_ALWAYS_SHOWN: Final = ("brokerClientTlsEnabled", "tlsAllowInsecureConnection", "brokerClientTlsEnabledWithKeyStore")


class Clusters:
    """Own and other clusters, as administrators named them, and where the clients of each shall go (migration)."""

    def __init__(self, store: MetadataStore, own: str) -> None:
        self._own = own
        self._store = store
        self._records = Collection(store, "/clusters", 1)
        self._migrations = Collection(store, "/cluster-migrations", 1)

    def names(self) -> list[str]:
        return [key[0] for key in self._records.below() if key[0] != GLOBAL]

    def exists(self, name: str) -> bool:
        return (name,) in self._records

    def get(self, name: str) -> JsonObject:
        """Raises NotFoundError."""
        found = self._records.get(name)
        if found is None:
            raise NotFoundError("Cluster does not exist")
        return {**found, **{k: v for k, v in _OF_OWN.items() if k not in found}} if name == self._own else found

    async def create(self, name: str, data: JsonObject) -> None:
        """Raises ConflictError, PreconditionFailedError for the name, InvalidValueError for an address."""
        if not is_valid_entity(name):
            raise PreconditionFailedError("Cluster name is not valid")
        await self._records.create((name,), _checked(data), "Cluster already exists")

    async def update(self, name: str, data: JsonObject) -> None:
        checked = _checked(data)

        def replaced(_: JsonObject | None) -> JsonObject:
            self.get(name)
            return checked

        await self._records.change((name,), replaced)

    async def delete(self, name: str) -> None:
        self.get(name)
        await change_together(self._store, lambda: self.without(name))

    def without(self, name: str) -> list[RecordWrite]:
        """The writes that remove a cluster, and whither its clients shall go."""
        return [*self._migrations.replacing((name,), None), *self._records.replacing((name,), None)]

    async def set_peers(self, name: str, peers: list[str] | None) -> None:
        """Replace the peer clusters. Raises NotFoundError, PreconditionFailedError for one that cannot be a peer."""
        for peer in peers or ():
            if peer.lower() == name.lower():
                raise PreconditionFailedError(f"{name} itself can't be part of peer-list")
            if not self.exists(peer):
                raise PreconditionFailedError(f"Peer cluster {peer} does not exist")
        self.get(name)

        def changed(old: JsonObject | None) -> JsonObject:
            self.get(name)
            kept = {field: value for field, value in (old or {}).items() if field != "peerClusterNames"}
            return kept if peers is None else {**kept, "peerClusterNames": [*peers]}

        await self._records.change((name,), changed)

    def migration(self, name: str) -> JsonObject | None:
        """Whether and whither the clients of a cluster shall go, not to be changed; None: no operator has set one."""
        return self._migrations.get(name)

    async def set_migration(self, name: str, migration: JsonObject) -> None:
        """Raises NotFoundError."""
        self.get(name)
        await self._migrations.change((name,), lambda _: migration)

    async def ensure(self, name: str, data: JsonObject) -> None:
        """Make it exist with these fields; other fields stay, and an unchanged record is not written."""
        checked = _checked(data)
        if any((self._records.get(name) or {}).get(field, _NEVER) != value for field, value in checked.items()):
            await self._records.change((name,), lambda old: {**(old or {}), **checked})

    async def announce(self, name: str, urls: Mapping[str, str]) -> None:
        """Record addresses; those that are empty leave the record, and an unchanged record is not written."""
        open_urls = _checked({field: url for field, url in urls.items() if url})
        known = self._records.get(name) or {}
        if {**known, **open_urls} != known or any(field in known and not url for field, url in urls.items()):
            await self._records.change(
                (name,), lambda old: {k: v for k, v in {**(old or {}), **open_urls}.items() if urls.get(k) != ""}
            )


def _is_address(text: str, scheme: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme == scheme and bool(parts.netloc)


def _checked(data: JsonObject) -> JsonObject:
    for name, (scheme, example) in _URLS.items():
        value = data.get(name)
        if value and (not isinstance(value, str) or not _is_address(value, scheme)):
            raise InvalidValueError(_ILLEGAL[name] + example)
    kept = {name: value for name, value in data.items() if name in CLUSTER_FIELDS and value is not None}
    return {**kept, **{name: kept.get(name, False) for name in _ALWAYS_SHOWN}}
