"""Publishing over REST: ``POST /topics/...`` (docs/rest.md).

A request is a client of the broker for a moment: it opens a producer, sends its messages, waits until they are stored
and leaves, so every rule for producers holds for it. Nothing is sent before all messages of a request are found good.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import BodyTooLargeError, answer, json_body
from magnetar.admin.http.parameters import NameText, PathText, topic_name
from magnetar.admin.http.peer import peer_of
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import SchemasPort, TopicsPort
from magnetar.admin.values.client_refusals import reason_of, status_of
from magnetar.admin.values.coercion import number, text
from magnetar.admin.values.inner_peer import InnerClientMaker
from magnetar.admin.values.rest_messages import RestMessage, messages_of, schema_of
from magnetar.client.errors import ClientError, RefusedError
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, MagnetarError, NotFoundError, TopicNotFoundError
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol import commands as c

if TYPE_CHECKING:
    from magnetar.client.aio.producers.producer import Producer
    from magnetar.client.aio.topics.receipt import Receipt

_PATH: Final = "/topics/{domain:domain}/{tenant}/{namespace}/{topic}"
_NOT_OWNED: Final = "Topic not owned by current broker."
_FAILED: Final = "Fail to publish message: "
_RETRY, _GIVE_UP = 1, 2
MESSAGES_MAX: Final = 10_000
"""Messages of one request: a body has room for hundreds of thousands of empty ones."""
_TURN: Final = 50
"""Messages that are sent before others have their turn of the loop."""
_ROOM: Final = 1 << 20
"""Bytes that a body may have beyond the largest message: names, properties and escapes."""


def routes(
    topics: TopicsPort, schemas: SchemasPort, clients: InnerClientMaker, resources: Resources, settings: Settings
) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    producing = _Producing(topics, schemas, clients, resources)
    most = settings.maxMessageSize + _ROOM

    @router.post(_PATH)
    async def produce(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        return answer(await producing.publish(name, None, await json_body(request, most), request))

    @router.post(_PATH + "/partitions/{partition}")
    async def produce_on_partition(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, partition: int, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if name.is_partition:
            raise InvalidValueError("Topic name can't contain '-partition-' suffix.")
        return answer(await producing.publish(name, partition, await json_body(request, most), request))

    return router


class _Producing:
    def __init__(
        self, topics: TopicsPort, schemas: SchemasPort, clients: InnerClientMaker, resources: Resources
    ) -> None:
        self._topics = topics
        self._schemas = schemas
        self._clients = clients
        self._resources = resources
        self._names: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """Requests with a producer's name come one after the other: a name has one producer at a time."""

    async def publish(self, topic: TopicName, partition: int | None, body: Json, request: Request) -> JsonObject:
        """Publish what a body holds; the answer of Pulsar, once everything is stored."""
        if not isinstance(body, dict):
            raise InvalidValueError('expected a JSON object with "messages"')
        self._resources.require_namespace(topic)
        partitions = self._resources.partitioned.count(topic)
        if not partitions and not self._topics.topic_exists(topic):
            raise TopicNotFoundError(f"{_FAILED}Topic {topic.fqn} not found")
        definition, version = self._schema(topic, body)
        beside = _count(body) > _TURN
        messages = await asyncio.to_thread(messages_of, body, definition) if beside else messages_of(body, definition)
        if partition is not None and not 0 <= partition < partitions:
            failed: JsonObject = {"errorMsg": _NOT_OWNED, "messageId": str(partition)}
            return _answer([{**failed, "errorCode": _GIVE_UP, "schemaVersion": 0} for _ in messages], version or 0)
        target = topic if partition is None else topic.partition(partition)
        name = text(body.get("producerName") or "", "a text as producerName")
        try:
            async with self._producer(target, name, definition, len(messages), request) as producer:
                results: list[Receipt | MagnetarError] = []
                for number, message in enumerate(messages, 1):
                    results.append(_send(producer, message))
                    if not number % _TURN:
                        await asyncio.sleep(0)
                await producer.flush()
                shown = [await _result(one) for one in results]
        except ClientError as error:
            raise HTTPException(status_of(error), f"{_FAILED}{error}") from error
        if version is None:
            found = self._schemas.find(topic, definition)
            version = 0 if found is None else found.version
        return _answer(shown, version)

    def _schema(self, topic: TopicName, body: JsonObject) -> tuple[SchemaDefinition, int | None]:
        given = body.get("schemaVersion")
        version = -1 if given is None else number(given, "a whole number as schemaVersion")
        if version < 0:
            return schema_of(body), None
        found = self._schemas.get(topic.parent if topic.is_partition else topic, version)
        if found is None:
            raise NotFoundError(f"{_FAILED}the topic has no schema of version {version}")
        return found.definition, version

    @asynccontextmanager
    async def _producer(
        self, topic: TopicName, name: str, definition: SchemaDefinition, messages: int, request: Request
    ) -> AsyncIterator[Producer]:
        await self._clients.ready()
        from magnetar.client.machines.outgoing.partition_router import PartitionsRoutingMode

        turn = self._names.setdefault((topic.fqn, name), asyncio.Lock()) if name else asyncio.Lock()
        numbers = count()
        async with turn, self._clients(peer_of(request)) as client:
            yield await client.create_producer(
                topic.fqn,
                name or None,
                _on_wire(definition),
                max_pending_messages=messages + 1,
                message_routing_mode=PartitionsRoutingMode.CustomPartition,
                message_router=lambda message, partitions: next(numbers) % partitions,
                properties={"via": "REST"},
            )


def _count(body: JsonObject) -> int:
    """How many messages there are. Raises BodyTooLargeError."""
    given = body.get("messages")
    count = len(given) if isinstance(given, list) else 0
    if count > MESSAGES_MAX:
        raise BodyTooLargeError(f"{count} messages in one request; {MESSAGES_MAX} are the most: send several")
    return count


def _on_wire(definition: SchemaDefinition) -> c.Schema | None:
    """What PRODUCER carries; bytes are without a schema there."""
    if definition.type in (SchemaType.BYTES, SchemaType.NONE):
        return None
    return c.Schema("", definition.data, definition.type, tuple(definition.properties.items()))


def _send(producer: Producer, message: RestMessage) -> Receipt | MagnetarError:
    after = message.deliver_after_ms
    try:
        return producer.send_nowait(
            producer.message(
                message.payload,
                message.properties,
                message.key,
                None,
                message.sequence_id,
                message.replication_clusters,
                message.disable_replication,
                message.event_time,
                message.deliver_at,
                timedelta(milliseconds=after) if after and not message.deliver_at else None,
            )
        )
    except MagnetarError as error:
        return error


async def _result(sent: Receipt | MagnetarError) -> JsonObject:
    try:
        if isinstance(sent, MagnetarError):
            raise sent
        found = await sent
    except MagnetarError as error:
        again = isinstance(error, RefusedError) and error.retriable
        return {"errorMsg": reason_of(error), "errorCode": _RETRY if again else _GIVE_UP, "schemaVersion": 0}
    place = f"{found.ledger_id()}:{found.entry_id()}:{found.partition()}"
    return {"messageId": place, "errorCode": 0, "schemaVersion": 0}


def _answer(results: list[JsonObject], version: int) -> JsonObject:
    return {"messagePublishResults": [*results], "schemaVersion": version}
