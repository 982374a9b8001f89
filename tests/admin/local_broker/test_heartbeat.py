"""The health check's own topic: used, hidden, never growing (rules 8.1, 8.7)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magnetar.model.names import TopicName
from magnetar.model.system_topics import is_heartbeat, is_system_topic
from tests.support.real_broker import RealBroker, real_broker

HEALTH = "/admin/v2/brokers/health"


def heartbeats(broker: RealBroker) -> list[str]:
    return [name for name in broker.node.broker.store.names() if name.endswith("/healthcheck")]


def test_health_checks_leave_no_messages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with real_broker(tmp_path) as broker:
            before = await broker.ask("GET", "/admin/v2/namespaces/pulsar")
            assert await broker.ask("GET", f"{HEALTH}?topicVersion=V3") == (
                404, {"reason": "topicVersion V3 is not one of V1, V2"},
            )  # fmt: skip
            for version in ("", "?topicVersion=V1", *["?topicVersion=V2"] * 5):
                assert await broker.ask("GET", HEALTH + version) == (200, "ok")
            own = broker.node.broker.service.broker_id
            one, two = f"persistent://pulsar/standalone/{own}/healthcheck", f"persistent://pulsar/{own}/healthcheck"
            assert heartbeats(broker) == [one, two]
            assert await broker.ask("GET", "/admin/v2/namespaces/pulsar") == before == (200, ["pulsar/system"])
            assert (await broker.ask("GET", f"/admin/v2/persistent/pulsar/{own}"))[0] == 404
            log = broker.node.broker.service.topics[two].log
            assert (log.end, log.retained_bytes(), len(log.table.ledgers)) == (5, 0, 1)
            await broker.node.broker.store.journal.drain()
            assert not list(log.spans)
            status, stats = await broker.ask("GET", f"/admin/v2/persistent/pulsar/{own}/healthcheck/stats")
            assert (status, stats["msgInCounter"], stats["storageSize"]) == (200, 5, 0)
        async with real_broker(tmp_path) as broker:
            # at another port: what the first life left is forgotten
            assert await broker.ask("GET", f"{HEALTH}?topicVersion=V2") == (200, "ok")
            assert heartbeats(broker) == [f"persistent://pulsar/{broker.node.broker.service.broker_id}/healthcheck"]

    asyncio.run(scenario())


def test_heartbeat_topics_are_named_after_the_broker() -> None:
    for name, heartbeat in (
        ("persistent://pulsar/127.0.0.1:8080/healthcheck", True),
        ("persistent://pulsar/standalone/localhost:8080/healthcheck", True),
        ("persistent://pulsar/system/healthcheck", False),
        ("persistent://public/127.0.0.1:8080/healthcheck", False),
        ("persistent://pulsar/127.0.0.1:8080/other", False),
    ):
        assert is_heartbeat(TopicName.parse(name)) is heartbeat
        assert is_system_topic(TopicName.parse(name)) is heartbeat
