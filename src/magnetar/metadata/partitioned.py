"""Which topics are partitioned, and into how many (rules 2.13, 2.14, 11.4.1).

Only the count and the properties; the partitions are ordinary topics. While some of them are being made, the record
notes the first that may be missing (``unmade``), so that a crash in between is noticed and mended. Who removes the
topic takes the note away first: what was to be made is not made any more, also not by the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from magnetar.metadata.collection import Collection
from magnetar.metadata.store import MetadataStore, RecordWrite
from magnetar.model.errors import (
    ConflictError,
    MetadataError,
    NotAcceptableError,
    NotFoundError,
    PreconditionFailedError,
    UnprocessableError,
)
from magnetar.model.names import PARTITION_SUFFIX, Domain, NamespaceName, TopicName
from magnetar.model.policies import PARTITIONS_MAX, JsonObject, PartitionedTopic


class PartitionedTopics:
    """Asked for every lookup; answers from memory."""

    def __init__(self, store: MetadataStore) -> None:
        self._records = Collection(store, "/partitioned-topics", 4, self._follow)
        self.max_partitions = 0
        """Of one topic; 0: without limit."""
        self._topics: dict[TopicName, PartitionedTopic] = {}
        self._unmade: dict[TopicName, int] = {}
        self._leaving: set[TopicName] = set()
        for key in self._records.below():
            self._follow(key)

    def _follow(self, key: tuple[str, ...]) -> None:
        tenant, namespace, domain, local = key
        topic, record = TopicName.stored(f"{domain}://{tenant}/{namespace}/{local}"), self._records.get(*key)
        self._unmade.pop(topic, None)
        if record is None:
            self._topics.pop(topic, None)
            return
        self._topics[topic] = _from_json(record)
        if isinstance(unmade := record.get("unmade"), int):
            self._unmade[topic] = unmade

    def get(self, topic: TopicName) -> PartitionedTopic | None:
        return self._topics.get(topic)

    def count(self, topic: TopicName) -> int:
        """Partitions of ``topic``; 0 if it is not partitioned."""
        found = self._topics.get(topic)
        return 0 if found is None else found.partitions

    def of_namespace(self, namespace: NamespaceName, domain: Domain | None = None) -> list[TopicName]:
        """Sorted by name."""
        return sorted(
            (t for t in self._topics if t.namespace == namespace and domain in (None, t.domain)), key=lambda t: t.fqn
        )

    async def create(
        self, topic: TopicName, partitions: int, properties: Mapping[str, str] | None = None, *, to_make: bool = False
    ) -> None:
        """The caller has seen that no plain topic of this name exists; ``to_make``: and calls :meth:`made` later."""
        if partitions <= 0:
            raise NotAcceptableError("Number of partitions should be more than 0")
        self.check_maximum(partitions)
        require_no_partition(topic)
        record = _to_json(topic, PartitionedTopic(partitions, dict(properties or {})), 0 if to_make else None)
        await self._records.create(_key(topic), record, "This topic already exists")

    async def grow(self, topic: TopicName, partitions: int) -> None:
        """Set a larger count; the same one changes nothing. The new ones are to be made; then comes :meth:`made`."""
        if partitions <= 0:
            raise NotAcceptableError("Number of partitions should be more than 0")

        def grown() -> JsonObject:
            found = self._topics.get(topic)
            if found is None:
                raise ConflictError(f"Topic {topic.fqn} is not the partitioned topic.")
            if partitions < found.partitions:
                raise UnprocessableError(
                    f"Desired partitions {partitions} can't be less than the current partitions {found.partitions}."
                )
            self.check_maximum(partitions)
            unmade = self._unmade.get(topic, found.partitions if partitions > found.partitions else None)
            return _to_json(topic, PartitionedTopic(partitions, found.properties), unmade)

        await self._change(topic, grown)

    def unmade(self, topic: TopicName) -> int | None:
        """The first partition that may not be there as it should; None: all are, or come with their first use."""
        return self._unmade.get(topic)

    def all_unmade(self) -> dict[TopicName, int]:
        """Return, for each topic that has one, the first partition that may not be there as it should."""
        return dict(self._unmade)

    async def made(self, topic: TopicName, end: int) -> None:
        """Partitions up to ``end - 1`` are there and durable."""

        def noted() -> JsonObject | None:
            found, unmade = self._topics.get(topic), self._unmade.get(topic)
            if found is None or unmade is None or end <= unmade:
                return None if found is None else _to_json(topic, found, unmade)
            return _to_json(topic, found, end if end < found.partitions else None)

        await self._change(topic, noted)

    @contextmanager
    def removal(self, topic: TopicName) -> Iterator[None]:
        """Refuse to make any partition while they are removed. Raises NotFoundError."""
        self._existing(topic)
        self._leaving.add(topic)
        try:
            yield
        finally:
            self._leaving.discard(topic)

    def without_note(self, topic: TopicName) -> list[RecordWrite]:
        """The write that takes away the note of what is to be made, if there is one. Raises NotFoundError."""
        found = self._existing(topic)
        return self._records.replacing(_key(topic), _to_json(topic, found, None)) if topic in self._unmade else []

    def leaving(self, topic: TopicName) -> bool:
        """Whether it is being removed just now."""
        return topic in self._leaving

    async def set_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Raises NotFoundError."""

        def replaced() -> JsonObject:
            value = PartitionedTopic(self._existing(topic).partitions, dict(properties))
            return _to_json(topic, value, self._unmade.get(topic))

        await self._change(topic, replaced)

    def without(self, topic: TopicName) -> list[RecordWrite]:
        """The write that deletes it; the partitions are the caller's. Raises NotFoundError."""
        self._existing(topic)
        return self._records.replacing(_key(topic), None)

    def _existing(self, topic: TopicName) -> PartitionedTopic:
        found = self._topics.get(topic)
        if found is None:
            raise NotFoundError(f"Topic {topic.fqn} not found.")
        return found

    def check_maximum(self, partitions: int) -> None:
        """Raise NotAcceptableError for more partitions than a topic may have."""
        if self.max_partitions and partitions > self.max_partitions:
            raise NotAcceptableError(f"Number of partitions should be less than or equal to {self.max_partitions}")
        if partitions > PARTITIONS_MAX:
            raise NotAcceptableError(
                f"Number of partitions should be less than or equal to {PARTITIONS_MAX}, which is as many as a broker "
                "serves of one topic, whatever maxNumPartitionsPerPartitionedTopic is"
            )

    async def _change(self, topic: TopicName, changed: Callable[[], JsonObject | None]) -> None:
        """Replace the record by what ``changed`` makes of the topic as it is; one that stays the same is not
        written."""
        key = _key(topic)
        same = object()
        if (changed() or same) != self._records.get(*key):
            await self._records.change(key, lambda _: changed())


def require_no_partition(topic: TopicName, *, strict: bool = False) -> None:
    """Refuse the name of a partition; ``strict``: a name with the suffix anywhere, which requests may not create.

    Who looks up ``x-partition-0-dd`` where topics become partitioned gets it, as in Apache Pulsar. Raises
    PreconditionFailedError.
    """
    if topic.is_partition or (strict and PARTITION_SUFFIX in topic.local_name):
        raise PreconditionFailedError(f"Partitioned Topic Name should not contain '{PARTITION_SUFFIX}'")


def _key(topic: TopicName) -> tuple[str, ...]:
    namespace = topic.namespace
    if namespace.cluster is not None:
        raise NotFoundError("Namespace not found")
    return (namespace.tenant, namespace.local_name, topic.domain, topic.local_name)


def _to_json(topic: TopicName, value: PartitionedTopic, unmade: int | None) -> JsonObject:
    record: JsonObject = {"partitions": value.partitions, "properties": dict(value.properties)}
    if unmade is not None and topic.persistent:
        record["unmade"] = unmade
    return record


def _from_json(record: JsonObject) -> PartitionedTopic:
    count, properties = record.get("partitions"), record.get("properties")
    if not isinstance(count, int) or not isinstance(properties, dict):
        raise MetadataError(f"not a record of a partitioned topic: {record}")
    return PartitionedTopic(count, {key: str(value) for key, value in properties.items()})
