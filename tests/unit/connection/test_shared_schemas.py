"""A schema belongs to the topics of both domains (rule 10.2): whoever brings a new one needs the right on both."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from magnetar.model.errors import ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import ANSWERS, RawClient
from tests.sim.world import World, run_seed
from tests.support.roles import SETTINGS, believing, client_of, grant

SPACE = NamespaceName.parse("acme/orders")
T = "persistent://acme/orders/t"
TWIN = "non-persistent://acme/orders/t"
SCHEMA = c.Schema("s", b'"string"', SchemaType.AVRO)


def talk(simulation: Callable[[World], Coroutine[Any, Any, None]], **grants: Any) -> None:
    """Run it in a broker with that persistent topic and the grants."""

    async def booted(world: World) -> None:
        await world.boot()
        resources = world.machine.broker.resources
        await resources.tenants.create("acme", {"adminRoles": [], "allowedClusters": ["standalone"]})
        await resources.namespaces.create("acme", "orders")
        await (await (await client_of("root")).producer(T)).publish(b"x")
        await grant(resources, SPACE, **grants)
        await simulation(world)

    run_seed(booted, 1, settings=SETTINGS, tamper=believing)


async def tried(client: RawClient, command: Any) -> bool:
    """Whether it is allowed."""
    client.say(command)
    answer: Any = await client.hear(*ANSWERS, where=lambda answer: answer.request_id == command.request_id)
    return getattr(answer, "error", None) is not ServerError.AuthorizationError


def test_a_new_schema_of_both_domains_needs_the_right_on_both() -> None:
    first, other = SCHEMA, c.Schema("s", b'"long"', SchemaType.AVRO)
    rights = ["produce", "consume"]

    async def simulation(world: World) -> None:
        schemas = world.machine.broker.service.schemas
        one, both = await client_of("one"), await client_of("both")

        assert await tried(one, c.CommandProducer(TWIN, 1, 1))
        for topic in (TWIN, T):
            for command in (
                c.CommandGetOrCreateSchema(2, topic, first),
                c.CommandProducer(topic, 3, 3, schema=first),
                c.CommandSubscribe(topic, "s", c.SubType.Shared, 4, 4, schema=first),
                c.CommandProducer(f"{topic}-partition-0", 5, 5, schema=first),
            ):
                assert not await tried(one, command), command
            assert not schemas.history(TopicName.parse(T)), "nothing is registered"
            await grant(
                world.machine.broker.resources,
                SPACE,
                topics={T: {"one": rights, "both": rights}, TWIN: {"both": rights}},
            )
        assert await tried(both, c.CommandProducer(TWIN, 1, 1, schema=first))
        # what is there already is nobody's change
        assert await tried(one, c.CommandProducer(T, 6, 6, schema=first))
        assert await tried(one, c.CommandGetOrCreateSchema(7, T, first))
        assert await tried(one, c.CommandSubscribe(T, "s", c.SubType.Shared, 8, 8, schema=first))
        assert not await tried(one, c.CommandProducer(T, 9, 9, schema=other))
        # neither is the lack of a schema
        assert await tried(one, c.CommandGetOrCreateSchema(10, T, c.Schema("s", b"", SchemaType.NONE)))
        auto = c.Schema("s", b"", SchemaType.AUTO_CONSUME)
        assert await tried(one, c.CommandSubscribe(T, "auto", c.SubType.Shared, 11, 11, schema=auto))
        assert len(schemas.history(TopicName.parse(T))) == 1

    talk(simulation, topics={TWIN: {"one": rights, "both": rights}, T: {"both": rights}})


def test_a_topic_without_a_namesake_has_its_schemas_for_itself() -> None:
    async def simulation(world: World) -> None:
        one = await client_of("one")
        assert await tried(one, c.CommandProducer(T, 1, 1, schema=SCHEMA))

    talk(simulation, topics={T: {"one": ["produce"]}})


def test_a_namesake_may_be_a_partitioned_topic_of_which_no_partition_is_loaded() -> None:
    """Its schemas are those of its name, whether anybody uses it now or not."""
    name = "acme/orders/partitioned"

    async def simulation(world: World) -> None:
        await world.machine.broker.resources.partitioned.create(TopicName.parse(f"persistent://{name}"), 2)
        one = await client_of("one")
        assert await tried(one, c.CommandProducer(f"non-persistent://{name}", 1, 1))
        assert not await tried(one, c.CommandGetOrCreateSchema(2, f"non-persistent://{name}", SCHEMA))

    talk(simulation, topics={f"non-persistent://{name}": {"one": ["produce"]}})
