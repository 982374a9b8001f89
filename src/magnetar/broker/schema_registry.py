"""The schema registry: which versions may be added to a topic's schema, by its policies (rules of group 10).

Versions are durable when :meth:`SchemaRegistry.add` returns, so an answer to a client may promise them. Nothing here
is asked per message: a producer and a consumer each ask once, when they come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final, TypeVar

from magnetar.broker.activity import SchemaActivity, count
from magnetar.broker.policies.effective_policies import EffectivePolicies
from magnetar.metadata.schemas import History, SchemaStore
from magnetar.model.errors import BadVersionError, IncompatibleSchemaError, MagnetarError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaId, SchemaType, SchemaVersion
from magnetar.runtime.clock import Clock
from magnetar.schema_definitions.compatibility import identical, require_follows_all, require_follows_latest, same
from magnetar.schema_definitions.strategies import CompatibilityStrategy, of_consumers
from magnetar.schema_definitions.validation import require_valid

log = logging.getLogger(__name__)

_AT_ONCE_MAX: Final = 16 << 10
"""Bytes of definitions that are judged on the event loop; a megabyte of them takes two seconds."""
_AGAIN_SECONDS: Final = 10.0
Judgement = TypeVar("Judgement")

_ENFORCED = (
    # the missing space is Pulsar's
    "Producers cannot connect or send message without a schema to topics with a schema"
    "when SchemaValidationEnforced is enabled"
)


class SchemaRegistry:
    """The schemas of all topics of a broker, used from the event loop. All methods may raise MetadataError."""

    def __init__(
        self, store: SchemaStore, policies: EffectivePolicies, clock: Clock, activity: SchemaActivity | None = None
    ) -> None:
        self._activity = activity or SchemaActivity()
        self._store = store
        self._policies = policies
        self._clock = clock
        self._judging = asyncio.Lock()
        """Large definitions are judged one after another."""

    # reading -----------------------------------------------------------------------------------------------------

    def versions(self, topic: TopicName) -> History:
        """The versions that count: those after the latest deletion."""
        history = self._store.history(SchemaId.of(topic))
        start = next((i + 1 for i in range(len(history) - 1, -1, -1) if history[i].deleted), 0)
        return history[start:]

    def history(self, topic: TopicName) -> History:
        """All versions, deletions included."""
        return self._store.history(SchemaId.of(topic))

    def latest(self, topic: TopicName) -> SchemaVersion | None:
        """The schema of a topic, if it has one."""
        with self._activity.operation("get", str(topic.namespace)):
            versions = self.versions(topic)
        return versions[-1] if versions else None

    def get(self, topic: TopicName, version: int) -> SchemaVersion | None:
        """A version by its number, unless it was deleted."""
        with self._activity.operation("get", str(topic.namespace)):
            return next((found for found in self.versions(topic) if found.version == version), None)

    def find(self, topic: TopicName, definition: SchemaDefinition) -> SchemaVersion | None:
        """The version that has this schema already."""
        return same(self.versions(topic), _stored(definition))

    def knows(self, topic: TopicName, definition: SchemaDefinition) -> bool:
        """Whether a version has the same bytes; unlike :meth:`find` it parses nothing."""
        wanted = _stored(definition)
        given = (version.definition for version in self.versions(topic))
        return any(one.type == wanted.type and one.data == wanted.data for one in given)

    def strategy(self, topic: TopicName) -> CompatibilityStrategy:
        """The compatibility strategy that a new version must meet."""
        try:
            return CompatibilityStrategy(self._policies.of(topic).schema_compatibility_strategy)
        except ValueError:
            # a namespace may be created with anything in its policies
            return CompatibilityStrategy(self._policies.broker.schema_compatibility_strategy)

    # adding ------------------------------------------------------------------------------------------------------

    async def add(self, topic: TopicName, definition: SchemaDefinition, *, by_client: bool) -> int:
        """The version of this schema, a new one if it has none yet (rule 10.4).

        Raises InvalidSchemaDataError, IncompatibleSchemaError.
        """
        with self._activity.operation("put", str(topic.namespace)):
            return await self._add(topic, _stored(definition), by_client=by_client)

    async def _add(self, topic: TopicName, definition: SchemaDefinition, *, by_client: bool) -> int:
        known = identical(self.versions(topic), definition)  # most who come bring what is there already
        if known is not None:
            return known.version
        await self._judged((), definition, lambda: require_valid(definition))
        made: SchemaVersion | None = None
        while made is None:
            history, versions = self.history(topic), self.versions(topic)
            found = await self._judged(versions, definition, partial(same, versions, definition))
            if found is not None:
                return found.version
            await self._require_may_follow(topic, versions, definition, by_client=by_client)
            if len(self.history(topic)) != len(history):
                continue  # another one was added while this one was judged
            # if another broker gives the next version meanwhile, all of this is asked again
            with suppress(BadVersionError):
                made = await self._store.append(SchemaId.of(topic), definition, self._clock.now_ms())
        name = topic.parent.fqn
        log.info("schema of %s: version %d, %s", name, made.version, definition.type.name, extra={"topic": name})
        return made.version

    async def _judged(
        self, versions: Iterable[SchemaVersion], definition: SchemaDefinition, judge: Callable[[], Judgement]
    ) -> Judgement:
        """Ask ``judge`` about them: at once, or beside the loop if there is much to read."""
        size = sum(len(one.data) for one in chain((version.definition for version in versions), (definition,)))
        if size <= _AT_ONCE_MAX:
            return judge()
        async with self._judging:
            thread = ThreadPoolExecutor(1, "schemas")
            try:
                return await asyncio.get_running_loop().run_in_executor(thread, judge)
            finally:
                thread.shutdown(wait=False)

    async def _require_may_follow(
        self, topic: TopicName, versions: History, definition: SchemaDefinition, *, by_client: bool
    ) -> None:
        if by_client and not self._policies.of(topic).schema_auto_update_allowed:
            raise IncompatibleSchemaError("Schema not found and schema auto updating is disabled.")
        await self._require_follows(topic, versions, definition)

    async def _require_follows(self, topic: TopicName, versions: History, definition: SchemaDefinition) -> None:
        """Ask the topic's strategy, and count what it says."""
        try:
            strategy = self.strategy(topic)
            await self._judged(versions, definition, lambda: _require_follows(versions, definition, strategy))
        except IncompatibleSchemaError:
            count(self._activity.incompatible, str(topic.namespace))
            raise
        count(self._activity.compatible, str(topic.namespace))

    async def require_compatible(self, topic: TopicName, definition: SchemaDefinition) -> None:
        """Check whether :meth:`add` would accept it from an administrator. Raises as it does."""
        definition = _stored(definition)
        await self._judged((), definition, lambda: require_valid(definition))
        await self._require_follows(topic, self.versions(topic), definition)

    async def require_readable(self, topic: TopicName, definition: SchemaDefinition) -> None:
        """Check whether a consumer with this schema may read the topic (rule 10.7). Raises as :meth:`add` does."""
        await self._judged((), definition, lambda: require_valid(definition))
        strategy = self.strategy(topic)
        if strategy is CompatibilityStrategy.ALWAYS_COMPATIBLE:
            return
        versions = self.versions(topic)
        if not versions:
            raise IncompatibleSchemaError(
                "Failed to add schema to an active topic with empty(BYTES) schema: new schema type "
                f"{definition.type.name}"
            )
        strategy, all_of_them = of_consumers(strategy)
        if all_of_them:
            await self._judged(versions, definition, lambda: require_follows_all(versions, definition, strategy))
        else:
            latest = versions[-1]
            await self._judged((latest,), definition, lambda: require_follows_latest(latest, definition, strategy))

    def require_schema_of_producer(self, topic: TopicName) -> None:
        """Check a producer without a schema: the topic may have one and enforce it (rule 10.12)."""
        if self._policies.of(topic).schema_validation_enforced and self.versions(topic):
            raise IncompatibleSchemaError(_ENFORCED)

    # removing ----------------------------------------------------------------------------------------------------

    async def delete(self, topic: TopicName) -> int:
        """Delete the schema; the deletion is a version itself (rule 10.11)."""
        with self._activity.operation("del", str(topic.namespace)):
            made = await self._store.append(
                SchemaId.of(topic), SchemaDefinition(SchemaType.NONE), self._clock.now_ms(), deleted=True
            )
        return made.version

    async def purge(self, topic: TopicName) -> None:
        """Remove all versions, as if there had never been one."""
        await self._store.purge(SchemaId.of(topic))

    async def topic_deleted(self, topic: TopicName, exists: Callable[[TopicName], bool]) -> None:
        """Remove the schema of a topic whose deletion is durable; what fails is in the log, and tried again.

        It stays with a partition, and if the topic exists again or in the other domain, whose schema is the same.
        """
        local_name, namespace = topic.local_name, topic.namespace
        namesakes = (namespace.topic(local_name), namespace.topic(local_name, "non-persistent"))
        known, said = {"topic": topic.fqn}, ""
        while not topic.is_partition and not any(map(exists, namesakes)):
            try:
                await self.purge(topic)
                return
            except MagnetarError as error:
                if said != (said := str(error)):
                    text = "%s is deleted, its schema is not yet; until a restart that is tried again: %s"
                    log.error(text, topic.fqn, error, extra=known)
            await asyncio.sleep(_AGAIN_SECONDS)


def _require_follows(versions: History, definition: SchemaDefinition, strategy: CompatibilityStrategy) -> None:
    if not versions:
        return
    if strategy.transitive:
        require_follows_all(versions, definition, strategy)
    else:
        require_follows_latest(versions[-1], definition, strategy)


def _stored(definition: SchemaDefinition) -> SchemaDefinition:
    """The stored form of a schema; BYTES is no schema in the protocol, which has no number for it."""
    return replace(definition, type=SchemaType.NONE) if definition.type is SchemaType.BYTES else definition
