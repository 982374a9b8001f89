"""Administrators who change the same thing at once, in a store whose writes take a while: each change is made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

from magnetar.config.settings import Settings
from magnetar.metadata.collection import change_together
from magnetar.metadata.resources import Resources
from magnetar.metadata.store import RecordWrite
from magnetar.model.errors import BadVersionError, NotFoundError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import JsonObject, PartitionedTopic
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.late_metadata import made_late
from tests.support.loop_turns import turns_of_others

T = TopicName.parse("persistent://public/default/t")
DEFAULT = NamespaceName.parse("public/default")
INFO: JsonObject = {"adminRoles": ["a"], "allowedClusters": ["standalone"]}


def run_late(scenario: Callable[[Resources], Awaitable[None]]) -> None:
    async def run() -> None:
        resources = Resources(made_late(MemoryMetadataStore(), lambda: asyncio.sleep(0)), Settings())
        await resources.ensure_defaults()
        await scenario(resources)

    asyncio.run(run())


def test_a_partitioned_topic() -> None:
    async def act(resources: Resources) -> None:
        topics = resources.partitioned
        await topics.create(T, 2, to_make=True)
        await asyncio.gather(
            topics.set_properties(T, {"a": "1"}),
            topics.grow(T, 4),
            topics.made(T, 2),
            topics.set_properties(T, {"b": "2"}),
        )
        assert topics.get(T) == PartitionedTopic(4, {"b": "2"})
        assert topics.unmade(T) == 2
        await asyncio.gather(topics.grow(T, 5), topics.grow(T, 7), topics.made(T, 4))
        assert (topics.count(T), topics.unmade(T)) == (7, 4)
        late = asyncio.gather(topics.set_properties(T, {}), topics.made(T, 7), return_exceptions=True)
        with topics.removal(T):
            await resources.delete_partitioned(T, with_schema=True)
        assert all(one is None or isinstance(one, NotFoundError) for one in await late)
        assert topics.get(T) is None
        # what is finished later makes no topic again
        await topics.made(T, 7)
        assert topics.get(T) is None

    run_late(act)


def test_tenants_clusters_groups_and_namespaces() -> None:
    async def act(resources: Resources) -> None:
        tenants, clusters, groups = resources.tenants, resources.clusters, resources.resource_groups
        await asyncio.gather(tenants.update("public", INFO), tenants.update("public", {**INFO, "adminRoles": ["b"]}))
        assert tenants.get("public")["adminRoles"] == ["b"]
        await clusters.create("other", {})
        await asyncio.gather(
            clusters.update("other", {"serviceUrl": "http://a:1"}),
            clusters.update("other", {"serviceUrl": "http://b:1"}),
        )
        assert clusters.get("other")["serviceUrl"] == "http://b:1"
        await groups.put("g", {})
        await tenants.create("gone", INFO)
        await asyncio.gather(
            clusters.update("other", {}), clusters.delete("other"),
            groups.put("g", {"publishRateInMsgs": 5}), groups.delete("g"),
            tenants.update("gone", INFO), tenants.delete("gone", has_namespaces=False),
            resources.namespaces.update(DEFAULT, properties={}),
            resources.namespaces.delete(DEFAULT, has_topics=False),
        )  # fmt: skip
        assert not clusters.exists("other") and not groups.exists("g") and not tenants.exists("gone")
        assert not resources.namespaces.exists(DEFAULT)
        # who comes too late makes nothing again
        late = await asyncio.gather(tenants.update("gone", INFO), clusters.update("other", {}), return_exceptions=True)
        assert [type(one) for one in late] == [NotFoundError] * 2

    run_late(act)


@pytest.mark.parametrize("lost", [0, 1, 99, 100])
def test_a_change_together_is_tried_a_hundred_times_and_then_says_so(lost: int) -> None:
    """Nobody may take it for made if it never was; others have a turn after each try, who were first."""
    store, planned = MemoryMetadataStore(), list[int]()

    def plan() -> list[RecordWrite]:
        planned.append(len(planned))
        return [RecordWrite("/a", b"1", 7 if len(planned) <= lost else None), RecordWrite("/b", b"2", None)]

    async def change() -> None:
        with turns_of_others() as turns, pytest.raises(BadVersionError) if lost >= 100 else nullcontext():
            await change_together(store, plan)
        assert turns.count == min(lost, 99)

    asyncio.run(change())
    assert len(planned) == min(lost + 1, 100)
    assert [store.get(path) is not None for path in ("/a", "/b")] == [lost < 100] * 2
