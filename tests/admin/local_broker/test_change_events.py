"""The topic of changed policies, through REST and sockets (rules 8.1, 8.2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from magnetar.protocol import commands as c
from magnetar.protocol.entries import metadata_of, payload_of
from magnetar.testing.rawclient import RawClientError
from tests.support.real_broker import RealBroker, real_broker

NS = "/admin/v2/namespaces/public/n"
TOPICS = "/admin/v2/persistent/public/n"
EVENTS = "persistent://public/n/__change_events"


async def messages(broker: RealBroker, count: int) -> list[tuple[str | None, Any]]:
    """Key and value of the first ``count`` messages."""
    client = await broker.client()
    reader = await client.subscribe(EVENTS, "r", initial_position=c.InitialPosition.Earliest, durable=False)
    reader.flow(100)
    found: list[tuple[str | None, Any]] = []
    while len(found) < count:
        entry = (await reader.receive()).entry
        metadata = metadata_of(entry)
        found.append((metadata.partition_key, None if metadata.null_value else json.loads(payload_of(entry))))
    await client.close()
    return found


def test_changes_are_published_and_their_topic_is_hidden(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with real_broker(tmp_path) as broker:
            assert (await broker.ask("PUT", NS))[0] == 204
            assert (await broker.ask("PUT", f"{TOPICS}/t"))[0] == 204
            assert await broker.ask("GET", f"{TOPICS}?includeSystemTopic=true") == (
                200, ["persistent://public/n/t"],
            )  # fmt: skip
            for value in (5, 6, 6):
                assert (await broker.ask("POST", f"{TOPICS}/t/maxConsumers", value))[0] == 204
            assert (await broker.ask("POST", f"{TOPICS}/t/maxProducers?isGlobal=true", 3))[0] == 204
            assert (await broker.ask("DELETE", f"{TOPICS}/t"))[0] == 204
            found = await messages(broker, 5)
            assert [key for key, _ in found] == [
                f"{prefix}persistent://public/n/t" for prefix in ("", "", "__G__", "", "__G__")
            ]
            assert found[0][1] == {
                "actionType": "UPDATE",
                "eventType": "TOPIC_POLICY",
                "replicateTo": ["standalone"],
                "topicPoliciesEvent": {
                    "domain": "persistent",
                    "tenant": "public",
                    "namespace": "n",
                    "topic": "t",
                    "policies": {"maxConsumers": 5, "isGlobal": False},
                },
            }
            assert [value and value["topicPoliciesEvent"]["policies"] for _, value in found[1:]] == [
                {"maxConsumers": 6, "isGlobal": False}, {"maxProducers": 3, "isGlobal": True}, None, None,
            ]  # fmt: skip
            await hidden(broker)
            # what the broker made for itself does not keep a namespace from being deleted
            assert (await broker.ask("DELETE", NS))[0] == 204
            assert not [name for name in broker.node.broker.store.names() if "public/n/" in name]

    asyncio.run(scenario())


async def hidden(broker: RealBroker) -> None:
    assert await broker.ask("GET", TOPICS) == (200, [])
    assert await broker.ask("GET", f"{NS}/topics") == (200, [])
    assert await broker.ask("GET", f"{NS}/topics?includeSystemTopic=true") == (200, [EVENTS])
    client = await broker.client()
    request = c.CommandGetTopicsOfNamespace(client.new_id(), "public/n", c.NamespaceMode.ALL)
    assert (await client.request(request, c.CommandGetTopicsOfNamespaceResponse)).topics == ()
    await client.close()


def test_a_deleted_topic_of_changes_comes_back_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with real_broker(tmp_path, forceDeleteNamespaceAllowed=True) as broker:
            assert (await broker.ask("PUT", NS))[0] == 204
            for name in ("a", "b"):
                assert (await broker.ask("PUT", f"{TOPICS}/{name}"))[0] == 204
                assert (await broker.ask("POST", f"{TOPICS}/{name}/maxConsumers", 5))[0] == 204
            assert (await broker.ask("DELETE", f"{TOPICS}/__change_events"))[0] == 204
            assert (await broker.ask("POST", f"{TOPICS}/a/maxConsumers", 6))[0] == 204
            assert {key for key, _ in await messages(broker, 2)} == {f"persistent://public/n/{x}" for x in "ab"}
            # by force, with policies in it
            assert (await broker.ask("DELETE", f"{NS}?force=true"))[0] == 204
            assert not [name for name in broker.node.broker.store.names() if "public/n/" in name]

    asyncio.run(scenario())


@pytest.mark.parametrize("by", ["consumer", "REST", "subscription"])
def test_it_can_be_opened_before_the_first_change(tmp_path: Path, by: str) -> None:
    """As in Apache Pulsar, and whether or not topics are made automatically; the first change comes."""

    async def scenario() -> None:
        async with real_broker(tmp_path, allowAutoTopicCreation=False, maxTopicsPerNamespace=1) as broker:
            assert (await broker.ask("PUT", NS))[0] == 204
            assert (await broker.ask("PUT", f"{TOPICS}/t"))[0] == 204
            path = f"{TOPICS}/__change_events"
            client = await broker.client()
            if by == "REST":
                assert (await broker.ask("PUT", path))[0] == 204
                assert (await broker.ask("PUT", path))[0] == 409
            elif by == "subscription":
                assert (await broker.ask("PUT", f"{path}/subscription/s"))[0] == 204
            else:
                assert (await client.partitions(EVENTS)).partitions == 0
            follower = await client.subscribe(EVENTS, "s")
            follower.flow(10)
            assert (await broker.ask("GET", f"{TOPICS}"))[1] == ["persistent://public/n/t"]
            assert (await broker.ask("POST", f"{TOPICS}/t/maxConsumers", 5))[0] == 204
            assert metadata_of((await follower.receive()).entry).partition_key == "persistent://public/n/t"
            assert (await broker.ask("PUT", f"{TOPICS}/__transaction_buffer_snapshot"))[0] == 409

    asyncio.run(scenario())


@pytest.mark.parametrize("off", ["topicLevelPoliciesEnabled", "systemTopicEnabled"])
def test_it_cannot_be_opened_where_nothing_would_be_written(tmp_path: Path, off: str) -> None:
    async def scenario() -> None:
        settings: dict[str, Any] = {off: False}
        async with real_broker(tmp_path, **settings) as broker:
            assert (await broker.ask("PUT", NS))[0] == 204
            assert (await broker.ask("PUT", f"{TOPICS}/__change_events"))[0] == 409
            with pytest.raises(RawClientError):
                await (await broker.client()).subscribe(EVENTS, "s")

    asyncio.run(scenario())


def test_no_events_where_topics_have_no_policies(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with real_broker(tmp_path, topicLevelPoliciesEnabled=False) as broker:
            assert (await broker.ask("PUT", NS))[0] == 204
            assert (await broker.ask("PUT", f"{TOPICS}/t"))[0] == 204
            assert (await broker.ask("DELETE", f"{TOPICS}/t"))[0] == 204
            assert EVENTS not in broker.node.broker.store

    asyncio.run(scenario())
