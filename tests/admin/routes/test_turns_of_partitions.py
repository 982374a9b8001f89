"""What is done with each partition gives others a turn of the loop: there may be ten thousand, all to be loaded."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.admin.application import create_app
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.ids import EARLIEST
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import asked
from tests.support.loop_turns import turns_of_others

TOPIC = TopicName.parse("persistent://public/default/p")
PATH = "/admin/v2/persistent/public/default/p"
PARTITIONS = 1000


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/subscriptions", None),
        ("GET", "/subscription/s/properties", None),
        ("PUT", "/subscription/s/properties", {"a": "1"}),
        ("GET", "/subscription/s/replicatedSubscriptionStatus", None),
        ("POST", "/subscription/s/replicatedSubscriptionStatus", True),
        ("POST", "/subscription/s/expireMessages/5", None),
        ("POST", "/all_subscription/expireMessages/5", None),
        ("DELETE", "/subscription/s", None),
        ("GET", "/internal-info", None),
        ("PUT", "/unload", None),
        ("PUT", "/compaction", None),
        ("POST", "/trim", None),
        ("DELETE", "/truncate", None),
        ("POST", "/terminate/partitions", None),
    ],
)
def test_others_have_turns_between_partitions(method: str, path: str, body: object) -> None:
    async def run() -> None:
        settings = Settings()
        resources = Resources(MemoryMetadataStore(), settings)
        await resources.ensure_defaults()
        broker = FakeBroker(resources, settings)
        await resources.partitioned.create(TOPIC, PARTITIONS)
        await broker.create_partitions(TOPIC, 0, PARTITIONS)
        for part in TOPIC.partitions(PARTITIONS):
            await broker.create_subscription(part, "s", EARLIEST, {}, replicated=False)
        app = create_app(broker.ports(), resources, settings)
        with turns_of_others() as turns:
            status, _ = await asked(app, method, PATH + path, body)
        assert status in (200, 204)
        assert turns.count >= PARTITIONS // 50

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/internalStats", "/internal-info"])
def test_an_answer_about_many_subscriptions_is_sent_in_pieces(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them may have a hundred thousand acknowledged ranges to be written."""
    many: JsonObject = {"state": "", "cursors": {f"s{number}": {} for number in range(2_000)}}

    async def found(broker: FakeBroker, topic: TopicName) -> JsonObject:
        return many

    async def run() -> None:
        monkeypatch.setattr(FakeBroker, "internal_stats", found)
        monkeypatch.setattr(FakeBroker, "managed_ledger_info", found)
        settings = Settings()
        resources = Resources(MemoryMetadataStore(), settings)
        await resources.ensure_defaults()
        broker = FakeBroker(resources, settings)
        broker.topics[TOPIC] = {}
        app = create_app(broker.ports(), resources, settings)
        with turns_of_others() as turns:
            assert await asked(app, "GET", PATH + path, None) == (200, many)
        assert turns.count >= 2_000 // 20

    asyncio.run(run())
