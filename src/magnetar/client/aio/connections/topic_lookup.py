"""Questions to a broker of the service URL (rules of group 2): who serves a topic, its partitions, all topics."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from magnetar.client.aio.connections.connection_pool import ConnectionPool
from magnetar.client.aio.connections.rest_questions import RestQuestions
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError, WrongPortError
from magnetar.client.lookup_answer import (
    REDIRECTS_MAX,
    Route,
    lookup_refusal,
    named_broker,
    partitions_refusal,
    route_to,
    too_many_redirects,
)
from magnetar.client.machines.handle_life import USUAL_BACKOFF, Backoff, Pauses
from magnetar.client.values.registry_answer import (
    KnownSchemas,
    Versioned,
    no_such_version,
    read_schema,
    schema_topic,
    unless_deleted,
)
from magnetar.model.errors import ServerError
from magnetar.model.schemas import SchemaDefinition
from magnetar.protocol import commands as c
from magnetar.security.credentials.secret import CredentialsDelayedError

log = logging.getLogger(__name__)

Result = TypeVar("Result")

TRANSIENT = (ConnectionLostError, ClientTimeoutError, CredentialsDelayedError)
"""What another attempt may heal, beside refusals that say so."""
_LONGEST_PAUSE = 2.0
"""Seconds between two attempts for which a caller waits."""


class TopicLookup:
    """The questions of one client."""

    def __init__(
        self,
        pool: ConnectionPool,
        rng: random.Random,
        timeout: float,
        listener: str | None,
        backoff: Backoff = USUAL_BACKOFF,
    ) -> None:
        self.backoff = backoff
        """The pauses of those who are connected by it."""
        self._pool = pool
        self._rest = RestQuestions(pool, timeout)
        self._rng = rng
        self._timeout = timeout
        self._listener = listener
        self._schemas, self._schemas_of = KnownSchemas(), pool.service
        self._asking = asyncio.Lock()

    async def connect(self, topic: str) -> WireConnection:
        """Return a connection to the broker that serves ``topic`` now; one attempt."""
        return await self._pool.to(await self.route(topic))

    async def route(self, topic: str) -> Route:
        """Ask until a broker says that it serves the topic; one attempt."""
        if self._over_http:
            return await self._rest.route(topic, self._listener)
        connection = await self._pool.question()
        authoritative = False
        for _ in range(REDIRECTS_MAX):
            asked = c.CommandLookupTopic(
                topic, connection.new_request_id(), authoritative, advertised_listener_name=self._listener
            )
            answer = await connection.request(asked, c.CommandLookupTopicResponse, f"look up {topic}")
            refusal = lookup_refusal(answer)
            if refusal is not None:
                raise connection.refused(f"look up {topic}", refusal, answer.message, asked)
            found = named_broker(answer, connection.address, topic)
            if answer.response is c.LookupType.Connect:
                return route_to(found, connection.address, answer)
            connection, authoritative = await self._pool.to(Route(found)), answer.authoritative
        raise too_many_redirects(topic)

    @property
    def _over_http(self) -> bool:
        return self._pool.service.url.over_http

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts, not longer than until the client moves to another service."""
        await self._pool.pause(seconds)

    async def partition_count(self, topic: str, *, create: bool = True) -> int:
        """Return the number of partitions, 0 for a topic without; ``create`` lets the broker make a missing topic."""
        what = f"ask for the partitions of {topic}"

        async def ask() -> int:
            if self._over_http:
                return await self._rest.partition_count(topic, create=create)
            connection = await self._pool.question()
            asked = c.CommandPartitionedTopicMetadata(
                topic, connection.new_request_id(), metadata_auto_creation_enabled=create
            )
            answer = await connection.request(asked, c.CommandPartitionedTopicMetadataResponse, what)
            refusal = partitions_refusal(answer)
            if refusal is not None:
                raise connection.refused(what, refusal, answer.message, asked)
            return answer.partitions or 0

        return await self.patiently(ask)

    async def exists(self, topic: str) -> bool:
        """Return whether there is such a topic, with partitions or without; none is made."""
        try:
            await self.partition_count(topic, create=False)
        except RefusedError as error:
            if error.code is ServerError.TopicNotFound:
                return False
            raise
        return True

    async def topics_of(self, namespace: str, mode: c.NamespaceMode) -> list[str]:
        """Return all topics of a namespace, each partition as a topic of its own."""

        async def ask() -> list[str]:
            if self._over_http:
                return await self._rest.topics_of(namespace, mode)
            connection = await self._pool.question()
            asked = c.CommandGetTopicsOfNamespace(connection.new_request_id(), namespace, mode)
            what = f"ask for the topics of {namespace}"
            return list((await connection.request(asked, c.CommandGetTopicsOfNamespaceResponse, what)).topics)

        return await self.patiently(ask)

    async def latest_schema(self, topic: str) -> SchemaDefinition | None:
        """Return the latest schema of a topic, None if it has none (rule 10.9)."""
        found = unless_deleted(await self._schema(schema_topic(topic), None))
        return None if found is None else found.definition

    async def schema_of_version(self, topic: str, version: bytes) -> SchemaDefinition:
        """Return the schema of a version as entries name it. Raises InvalidValueError if there is no such version."""
        name = schema_topic(topic)
        async with self._asking:  # partitions meet a version at the same time
            if self._schemas_of is not self._pool.service:  # another cluster has versions of its own
                self._schemas, self._schemas_of = KnownSchemas(), self._pool.service
            known = self._schemas.get(name, version)
            if known is None:
                found = await self._schema(name, version)
                if found is None:
                    raise no_such_version(name, version)
                known = found.definition
                self._schemas.add(name, version, known)
            return known

    async def _schema(self, topic: str, version: bytes | None) -> Versioned | None:
        async def ask() -> Versioned | None:
            # REST shows schemas of keys and values in another form: the topic's broker has it as it was stored
            connection = await (self.connect(topic) if self._over_http else self._pool.question())
            asked = c.CommandGetSchema(connection.new_request_id(), topic, version)
            answer = await connection.request(asked, c.CommandGetSchemaResponse, f"ask for the schema of {topic}")
            return read_schema(topic, version, answer)

        return await self.patiently(ask)

    async def patiently(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat an attempt, with growing pauses, while the broker is away or not ready; then raise the last error.

        That no broker answers is logged once, at INFO: who waits at a terminal wants to know.
        """
        loop = asyncio.get_running_loop()
        said = False
        deadline = loop.time() + self._timeout
        pauses = Pauses(Backoff(self.backoff.first, min(self.backoff.longest, _LONGEST_PAUSE)))
        while True:
            try:
                return await attempt()
            except (*TRANSIENT, RefusedError) as error:
                if not is_transient(error):
                    raise
                pause = pauses.next(self._rng.random())
                if loop.time() + pause > deadline:
                    raise
                if not said and not isinstance(error, RefusedError):
                    said = True
                    log.info("%s; trying again for up to %g s", error, self._timeout)
            await self._pool.pause(pause)


def is_transient(error: Exception) -> bool:
    """Whether another attempt may heal it: a broker that is away or not ready, and no login that is refused or port
    that speaks another protocol."""
    if isinstance(error, RefusedError):
        return error.retriable
    return isinstance(error, TRANSIENT) and not isinstance(error, WrongPortError)
