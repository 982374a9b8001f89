"""Unused topics are deleted, and their names do not fill the log."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from magnetar.broker.upkeep.inactive_topics import NAMED_PER_PASS
from magnetar.model.names import TopicName
from tests.support.compacted_by_rest import compact, publish
from tests.support.real_broker import TOPIC, real_broker


def test_a_crowd_of_unused_topics_is_named_by_its_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crowd = NAMED_PER_PASS + 5

    async def scenario() -> None:
        async with real_broker(tmp_path / "data") as broker:
            service = broker.node.broker.service
            for number in range(crowd):
                assert (await broker.ask("PUT", f"{TOPIC}/unused-{number}"))[0] == 204
                service.find(TopicName.parse(f"persistent://public/default/unused-{number}"))
            disuse = broker.node.broker.upkeep.inactive_topics
            assert await disuse.delete_topics() == 0
            for topic in service.topics.values():
                topic.idle_since_ms = 0
            assert await disuse.delete_topics() == crowd

    with caplog.at_level(logging.INFO, "magnetar.broker.upkeep.inactive_topics"):
        asyncio.run(scenario())
    said = [record.getMessage() for record in caplog.records if record.name == "magnetar.broker.upkeep.inactive_topics"]
    assert len(said) == NAMED_PER_PASS + 1
    assert said[-1].startswith(f"{crowd} unused topics were deleted")


def test_retention_keeps_no_topic_that_is_empty(tmp_path: Path) -> None:
    """As in Apache Pulsar: there is nothing to retain, be it for an hour or for ever (rule 4.7.3)."""

    async def scenario(minutes: int, data: Path) -> None:
        async with real_broker(data) as broker:
            kept = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": -1}
            assert (await broker.ask("POST", "/admin/v2/namespaces/public/default/retention", kept))[0] == 204
            client = await broker.client()
            producer = await client.producer("persistent://public/default/full")
            await producer.receipt(producer.send(b"m"))
            await producer.close()
            service = broker.node.broker.service
            assert (await broker.ask("PUT", f"{TOPIC}/empty"))[0] == 204
            service.find(TopicName.parse("persistent://public/default/empty"))
            disuse = broker.node.broker.upkeep.inactive_topics
            await disuse.delete_topics()
            for topic in service.topics.values():
                topic.idle_since_ms = service.clock.now_ms() - 120_000
            assert await disuse.delete_topics() == 1
            assert list(service.topics) == ["persistent://public/default/full"]

    for minutes in (60, -1):
        asyncio.run(scenario(minutes, tmp_path / f"{minutes}"))


def test_retention_keeps_what_only_the_compacted_view_holds(tmp_path: Path) -> None:
    """The log is empty, and compacted readers still get the last value of every key: it is kept like the log."""

    async def scenario() -> None:
        async with real_broker(tmp_path / "data") as broker:
            kept = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
            assert (await broker.ask("POST", "/admin/v2/namespaces/public/default/retention", kept))[0] == 204
            await publish(broker, ("k", "v"))
            await compact(broker)
            assert (await broker.ask("DELETE", f"{TOPIC}/t/truncate"))[0] == 204
            service = broker.node.broker.service
            (topic,) = service.topics.values()
            assert topic.log.first == topic.log.end
            disuse = broker.node.broker.upkeep.inactive_topics
            await disuse.delete_topics()
            topic.idle_since_ms = service.clock.now_ms() - 120_000
            assert await disuse.delete_topics() == 0
            kept["retentionTimeInMinutes"], kept["retentionSizeInMB"] = 1, 1
            assert (await broker.ask("POST", "/admin/v2/namespaces/public/default/retention", kept))[0] == 204
            assert await disuse.delete_topics() == 1, "retention ends"

    asyncio.run(scenario())
