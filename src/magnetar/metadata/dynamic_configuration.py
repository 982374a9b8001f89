"""The settings that administrators gave to running brokers, as texts by name (rule 11.2.4).

They are stronger than the configuration file, also after a restart, until they are deleted. One record for each name,
so that two administrators change two settings at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.metadata.collection import Collection
from magnetar.metadata.store import MetadataStore

_VALUE: Final = "value"


class DynamicConfiguration:
    """The kept values; read from memory."""

    def __init__(self, store: MetadataStore) -> None:
        self.changed: Callable[[], None] = _nothing
        """Called after each change, made here or elsewhere."""
        self._records = Collection(store, "/dynamic-configuration", 1, lambda _: self.changed())

    def values(self) -> dict[str, str]:
        """The kept values by the names of their settings."""
        found = ((name, self._records.get(name)) for (name,) in self._records.below())
        return {name: text for name, record in found if record is not None and isinstance(text := record[_VALUE], str)}

    async def put(self, name: str, value: str) -> None:
        """Keep a value; durable on return."""
        await self._records.change((name,), lambda _: {_VALUE: value})

    async def delete(self, name: str) -> None:
        """Forget a value, if there is one; durable on return."""
        await self._records.change((name,), lambda _: None)


def _nothing() -> None: ...
