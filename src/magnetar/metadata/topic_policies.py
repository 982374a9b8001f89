"""The policies that topics have of their own, as JSON by the names of their REST routes (rule 8.5).

They stand in the metadata store and nowhere else: a change is durable when its request is answered, whatever happens
next. Apache Pulsar keeps them as messages of the namespace's ``__change_events`` topic, which can be read late after a
restart; here that topic only reports changes (:mod:`magnetar.broker.policies.policy_events`). Partitions share the
policies of their parent (rule 8.4).

A policy set with ``isGlobal=true`` is kept beside the local one, and gives way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from magnetar.metadata.collection import Collection
from magnetar.metadata.store import MetadataStore, RecordWrite
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json, JsonObject

_NONE: Final[JsonObject] = {}


class TopicPolicyRecords:
    """One record per topic that has policies; read from memory."""

    def __init__(self, store: MetadataStore) -> None:
        self.changed: Callable[[TopicName], None] = _nothing
        """Called with the topic (a parent, never a partition) after each change, made here or elsewhere."""
        self._records = Collection(store, "/topic-policies", 4, lambda key: self.changed(_topic(key)))

    def get(self, topic: TopicName, *, is_global: bool = False) -> JsonObject:
        """Return the policies by name, not to be changed; empty if there are none."""
        found = self._records.get(*_key(topic))
        if found is None:
            return _NONE
        level = found.get(_level(is_global))
        return level if isinstance(level, dict) else _NONE

    def topics(self, namespace: NamespaceName | None = None) -> Iterator[TopicName]:
        """Yield the topics that have policies, in one namespace or in all."""
        prefix = () if namespace is None else (namespace.tenant, namespace.text)
        yield from map(_topic, self._records.below(*prefix))

    async def update(self, topic: TopicName, name: str, value: Json, *, is_global: bool = False) -> None:
        """Set one policy; ``None`` removes it. Durable on return."""
        await self.change(topic, name, lambda _: value, is_global=is_global)

    async def change(
        self, topic: TopicName, name: str, changed: Callable[[Json], Json], *, is_global: bool = False
    ) -> None:
        """Set one policy to what ``changed`` makes of it; ``None`` stands for a policy that is not set.

        ``changed`` is called again when another writer came first, and what it raises changes nothing. Durable on
        return.
        """

        def updated(levels: JsonObject | None) -> JsonObject | None:
            before = self.get(topic, is_global=is_global)
            policies = {**before, name: changed(before.get(name))}
            kept: JsonObject = {key: value for key, value in policies.items() if value is not None}
            left = {**(levels or {}), _level(is_global): kept}
            return {level: policies for level, policies in left.items() if policies} or None

        await self._records.change(_key(topic), updated)

    async def delete(self, topic: TopicName) -> None:
        """Delete all policies of the topic, if any; durable on return."""
        await self._records.change(_key(topic), lambda _: None)

    def without(self, topic: TopicName) -> list[RecordWrite]:
        """The write that deletes all policies of the topic, if any."""
        return self._records.replacing(_key(topic), None)


def _topic(key: tuple[str, ...]) -> TopicName:
    _, namespace, domain, local_name = key
    return TopicName.stored(f"{domain}://{namespace}/{local_name}")


def _level(is_global: bool) -> str:
    return "global" if is_global else "local"


def _key(topic: TopicName) -> tuple[str, str, str, str]:
    parent = topic.parent
    return (parent.tenant, parent.namespace.text, parent.domain, parent.local_name)


def _nothing(topic: TopicName) -> None: ...
