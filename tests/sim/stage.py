"""A broker whose disk can hang, two clients, REST, and a look at everything that somebody else could see meanwhile."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from magnetar.admin.application import create_app
from magnetar.admin.local_broker.broker import local_ports
from magnetar.admin.local_broker.stats.internal_stats import internal_stats
from magnetar.admin.ports import BrokerPorts, StatsOptions
from magnetar.model.names import NamespaceName, TopicName
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, RawProducer, payload_of
from tests.sim.world import T, World

REST = "/admin/v2/persistent/public/default"
SUB, OTHER_SUB = "sub", "other"
FIRST_MESSAGES = 6
_NAMESPACE = NamespaceName.parse("public/default")
_COUNTED = ("msgInCounter", "bytesInCounter", "storageSize", "backlogSize", "committedTxnCount", "abortedTxnCount")
_OF_LOG = ("numberOfEntries", "totalSize", "lastConfirmedEntry", "entriesAddedCounter")
_POLICIES = ("retention", "schemaCompatibilityStrategy", "backlogQuotaMap", f"{SUB}/dispatchRate")
_FACTS = (
    *(f"/admin/v2/{kind}" for kind in ("clusters", "tenants", "namespaces/public")),
    *(f"/admin/v2/{name}" for name in ("clusters/new", "tenants/new", "namespaces/public/new")),
    "/admin/v2/namespaces/public/default",
    "/admin/v2/namespaces/public/new/properties",
    "/admin/v2/namespaces/public/default/properties",
    *(f"{REST}/t/{policy}" for policy in _POLICIES),
    *(f"/admin/v2/{what}" for what in ("brokers/configuration/values", "clusters/new/peers", "clusters/new/migrate")),
    *(f"/admin/v2/clusters/standalone/{what}" for what in ("failureDomains", "namespaceIsolationPolicies")),
    *(f"/admin/v2/resource-quotas{bundle}" for bundle in ("", "/public/default/0x80000000_0xc0000000")),
    *(f"/admin/v2/namespaces/public/default/{what}" for what in ("persistence/bookieAffinity", "offloadPolicies")),
    *(f"/admin/v2/schemas/public/default/{topic}/schemas" for topic in ("t", "new")),
    *("/admin/v2/resourcegroups", "/admin/v2/resourcegroups/new", "/admin/v2/namespaces/public/default/resourcegroup"),
)
"""Where to look for facts."""

Sight = dict[str, Any]


class Stage:
    """One run: :meth:`set` it, hang the disk, ask, look, let the disk go on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client: RawClient
        """The connection that asks."""
        self.producer: RawProducer
        self.consumer: RawConsumer
        """A Shared consumer on ``SUB``, with everything that was sent at first delivered and nothing acknowledged."""
        self.got: list[c.CommandMessage] = []
        self.kept: Any = None
        """What the preparation of a promise leaves for its question."""
        self._app: tuple[object, Any] | None = None
        self._other: RawClient
        self._live: RawConsumer
        self._compacted: RawConsumer

    async def set(self) -> None:
        """A topic with messages, two subscriptions, a reader of each kind."""
        await self.world.boot()
        self.client, self._other = await connection(), await connection()
        self.producer = await self.client.producer(T, "p")
        self.consumer = await self.client.subscribe(T, SUB, c.SubType.Shared)
        await self.client.subscribe(T, OTHER_SUB, c.SubType.Shared)
        self._live = await self._other.subscribe(T, "live", durable=False)
        self._compacted = await self._other.subscribe(T, "compacted", durable=False, read_compacted=True)
        for number in range(FIRST_MESSAGES):
            await self.producer.publish(f"first {number}".encode(), key=f"k{number % 2}")
        for consumer in (self._live, self._compacted):
            consumer.flow(1000)
        self.consumer.flow(FIRST_MESSAGES)
        self.got = [await self.consumer.receive() for _ in range(FIRST_MESSAGES)]

    @property
    def ids(self) -> list[c.MessageIdData]:
        """The ids of the messages that ``SUB`` received."""
        return [message.message_id for message in self.got]

    async def rest(self, method: str, path: str, body: object = None) -> Any:
        """Ask over REST. Raises RefusedByRestError."""
        booted = self.world.machine.broker
        if self._app is None or self._app[0] is not booted:  # building one takes longer than a simulation
            self._app = booted, create_app(self.ports(), booted.resources, self.world.settings)
        transport = httpx.ASGITransport(self._app[1], raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            headers = {"content-type": "application/json"}
            content = None if body is None else json.dumps(body)
            answer = await client.request(method, path, content=content, headers=headers)
        if answer.status_code >= 400:
            raise RefusedByRestError(answer.status_code, answer.text)
        plain = not answer.content or answer.text[0] not in '{["0123456789'
        return answer.text if plain else answer.json()

    def ports(self) -> BrokerPorts:
        """What REST works on."""
        broker = self.world.machine.broker
        return local_ports(broker.service, broker.rates, broker.connections)

    # what others see ---------------------------------------------------------------------------------------------

    async def sight(self) -> Sight:
        """Everything that another client and an administrator see; asks only for what can be answered at once."""
        await asyncio.sleep(0.5)
        seen = await self.lasting()
        for name, reader in (("read", self._live), ("compacted", self._compacted)):
            messages = [one for one in self._other.heard(c.CommandMessage) if one.consumer_id == reader.consumer_id]
            seen[name] = [payload_of(message.entry) for message in messages]
            last = (await reader.last_message_id()).last_message_id
            seen[f"{name} last id"] = (last.ledger, last.entry)
        seen["heard by others"] = [type(command).__name__ for command in self._told()]
        return seen

    def _told(self) -> list[c.Command]:
        return [*self._other.heard(c.CommandCloseConsumer), *self._other.heard(c.CommandCloseProducer)]

    async def lasting(self) -> Sight:
        """The part of it that has to be the same after a crash."""
        service = self.world.machine.broker.service
        resources = service.resources
        seen: Sight = {
            "topics": sorted(service.names_in(_NAMESPACE)),
            "partitions": {name.fqn: resources.partitioned.count(name) for name in _partitioned(resources)},
        }
        if service.coordinator.running:
            seen["transactions"] = [one.id for one in service.coordinator.open]
        for name in seen["topics"]:
            seen.update(await self._topic(TopicName.parse(name)))
        return seen

    async def facts(self) -> Sight:
        """What the metadata keep, as REST shows it."""
        seen: Sight = {}
        for path in _FACTS:
            try:
                seen[path] = await self.rest("GET", path)
            except RefusedByRestError as refused:
                seen[path] = refused.status
        seen["partitioned"] = await self.rest("GET", f"{REST}/partitioned")
        return seen

    async def _topic(self, name: TopicName) -> Sight:
        topic = self.world.machine.broker.service.find(name)
        if topic is None:
            return {}
        stats = await self.ports().statistics.topic_stats(name, StatsOptions())
        internal = await internal_stats(topic)
        short = name.local_name
        seen: Sight = {
            f"{short} counters": {word: stats[word] for word in _COUNTED},
            f"{short} log": {word: internal[word] for word in _OF_LOG},
            f"{short} properties": topic.properties(),
            f"{short} epoch": stats.get("topicEpoch"),
            f"{short} terminated": topic.termination.terminated,
        }
        for subscription in topic.durable_subscriptions():
            cursor = topic.subscriptions[subscription].cursor
            seen[f"{short} {subscription}"] = (cursor.mark_delete, cursor.backlog(), dict(cursor.properties))
        return seen


def without_counters(seen: Sight) -> Sight:
    """Counters begin anew with each start."""
    gone = {word for word in seen if word.endswith((" counters", " log"))}
    return {word: value for word, value in seen.items() if word not in gone}


def _partitioned(resources: Any) -> list[TopicName]:
    found: list[TopicName] = resources.partitioned.of_namespace(_NAMESPACE)
    return found


class RefusedByRestError(Exception):
    """A status of 400 and above."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


async def connection() -> RawClient:
    """Connected, patient."""
    client = await RawClient.open(HOST, PORT, patience_s=60)
    await client.connect()
    return client


async def answered(client: RawClient, command: Any, kind: type[Any]) -> Any:
    """The answer to a request, whose error may stand in it."""
    answer = await client.request(command, kind)
    if getattr(answer, "error", None) is not None:
        raise RawClientError(answer.error, answer.message or "")
    return answer
