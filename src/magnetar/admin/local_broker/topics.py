"""Topics and partitions of this process: whether they exist, making and removing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from magnetar.admin.local_broker.loaded_topics import LoadedTopics, written
from magnetar.broker.namespaces import lookup
from magnetar.model.names import Domain, NamespaceName, TopicName
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.callbacks import answered


class LocalTopics:
    """Implements :class:`magnetar.admin.ports.TopicsPort`."""

    def __init__(self, loaded: LoadedTopics) -> None:
        self._loaded = loaded
        self._service = loaded.service

    def topics_of(self, namespace: NamespaceName) -> Iterable[TopicName]:
        pieces = self._service.directory.pieces(namespace, system=True)
        return map(TopicName.stored, chain.from_iterable(pieces))

    def names_of(self, namespace: NamespaceName, domains: Sequence[Domain], *, system: bool) -> Sequence[Sequence[str]]:
        return self._service.directory.pieces(namespace, domains, system=system)

    def topic_exists(self, topic: TopicName) -> bool:
        return self._service.exists(topic)

    def partitions_of(self, topic: TopicName) -> list[TopicName]:
        return self._service.partitions_of(topic)

    def clients_of(self, topic: TopicName) -> int:
        service = self._service
        found = service.topics.get(topic.fqn) or service.nonpersistent_topics.by_name.get(topic.fqn)
        return 0 if found is None else len(found.producers) + found.consumer_count()

    async def partition_count(self, topic: TopicName, *, auto_create: bool) -> int:
        service = self._service
        count = lookup.partition_count(
            service.resources,
            service.policies.auto_topic_creation(topic.namespace),
            topic,
            service.creation.room_for,
            exists=service.exists(topic),
            may_create=auto_create,
        )
        return await service.lookups.answered(count)

    def room_for(self, namespace: NamespaceName, topics: int) -> bool:
        return self._service.creation.room_for(namespace, topics)

    def policies_of(self, topic: TopicName, *, local: bool = True) -> TopicPolicies:
        return self._service.policies.of(topic) if local else self._service.policies.without_local(topic)

    async def policies_in_force(self) -> None:
        await self._service.policy_notification.all_notified()
        await self._service.grants_in_force()

    async def create_topic(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        if not topic.persistent:
            self._service.create_nonpersistent(topic)
            return
        found = self._service.create(topic)
        if properties:
            found.set_properties(dict(properties))
        await answered(found.when_durable)

    async def create_partitions(self, topic: TopicName, first: int, end: int) -> None:
        if not topic.persistent:
            return  # they come with their first client (rule 13.1)
        await self._service.partitions.make_durably(topic, first, end)

    async def delete_topic(self, topic: TopicName, *, force: bool) -> None:
        if not topic.persistent:
            await self._service.delete_nonpersistent(topic)
            return
        await self._service.delete(topic, force=force)
        await self._loaded.durable()

    async def unload_topic(self, topic: TopicName) -> None:
        if not topic.persistent:
            self._service.nonpersistent_topics.remove(topic)
            return
        if topic.fqn not in self._service.topics and self._service.exists(topic):
            return  # nothing is loaded of it
        await written(self._loaded.topic(topic).log.barrier)
        if topic.fqn in self._service.topics:
            self._service.unload(topic)
        await self._loaded.durable()
