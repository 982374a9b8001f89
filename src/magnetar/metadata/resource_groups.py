"""Resource groups by name: rates that the namespaces of a group share (rule 14.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.metadata.collection import Collection
from magnetar.metadata.store import MetadataStore
from magnetar.model.errors import NotFoundError, PreconditionFailedError
from magnetar.model.names import is_valid_entity
from magnetar.model.policies import Json, JsonObject
from magnetar.model.topic_policies import ResourceGroup

GROUP_RATES: Final = ("publishRateInMsgs", "publishRateInBytes", "dispatchRateInMsgs", "dispatchRateInBytes")


class ResourceGroups:
    """A rate of 0 or less is no limit."""

    def __init__(self, store: MetadataStore) -> None:
        self.changed: Callable[[str], None] = _nothing
        """Called after each change of a group, made here or elsewhere."""
        self._records = Collection(store, "/resourcegroups", 1, lambda key: self.changed(key[0]))

    def names(self) -> list[str]:
        return [key[0] for key in self._records.below()]

    def exists(self, name: str) -> bool:
        return (name,) in self._records

    def get(self, name: str) -> JsonObject:
        """Raises NotFoundError."""
        found = self._records.get(name)
        if found is None:
            raise NotFoundError("ResourceGroup does not exist")
        return dict(found)

    def find(self, name: Json) -> ResourceGroup | None:
        """The group as topics want it; None if there is no such group."""
        found = self._records.get(name) if isinstance(name, str) else None
        if found is None:
            return None
        rates = [value if isinstance(value := found.get(rate), int) else -1 for rate in GROUP_RATES]
        return ResourceGroup(str(name), (rates[0], rates[1]), (rates[2], rates[3]))

    async def put(self, name: str, rates: JsonObject) -> None:
        """Create a group, or change those rates of it that are given; durable on return."""
        if not is_valid_entity(name):
            raise PreconditionFailedError("ResourceGroup name is not valid")

        def merged(there: JsonObject | None) -> JsonObject:
            return {**dict.fromkeys(GROUP_RATES, -1), **(there or {}), **rates}

        await self._records.change((name,), merged)

    async def delete(self, name: str) -> None:
        """Raises NotFoundError. Whether namespaces are in it is the caller's question."""
        self.get(name)
        await self._records.change((name,), lambda _: None)


def _nothing(name: str) -> None: ...
