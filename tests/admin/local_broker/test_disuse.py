"""Unused topics are deleted, and their names do not fill the log."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from magnetar.broker.upkeep.inactive_topics import NAMED_PER_PASS
from magnetar.model.names import TopicName
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
