"""A subscription with very many acknowledged ranges: they are counted, not gone through, by what is asked often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.storage.ledgers.cursor import Cursor
from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

T = "persistent://public/default/t"
URL = f"{TOPIC}/t"


def test_they_are_not_gone_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics of a topic, those of a consumer, metrics and the look at what stands still: half a million ranges took
    half a second of one turn each time."""

    def gone_through(self: Cursor) -> Any:
        raise AssertionError("they are gone through")

    async def run(broker: RealBroker) -> None:
        client = await broker.client()
        producer = await client.producer(T)
        later = 1 << 50
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        for i in range(9):
            metadata = EntryMetadata("p", i, 1, deliver_at_time=later if i == 8 else None)
            await producer.receipt(producer.send(b"", entry=build_entry(metadata, b"m")))
        consumer.flow(100)
        for i in range(8):
            message = await consumer.receive()
            if i % 2:
                await consumer.ack(message.message_id)
        await client.lookup(T)
        monkeypatch.setattr(Cursor, "acknowledged_ranges", gone_through)
        whole = (await broker.ask("GET", URL + "/stats"))[1]
        stats = whole["subscriptions"]["s"]
        assert (stats["nonContiguousDeletedMessagesRanges"], stats["msgDelayed"], stats["msgBacklog"]) == (4, 1, 5)
        assert whole["nonContiguousDeletedMessagesRangesSerializedSize"] == 4 * 16
        assert stats["nonContiguousDeletedMessagesRangesSerializedSize"] == 4 * 16, "two ordinals for each"
        status, text = await broker.ask("GET", "/metrics")
        assert (status, "pulsar_subscription_delayed" in str(text)) == (200, True)
        subscription = broker.node.broker.service.topics[T].subscriptions["s"]
        assert subscription.should_send() == ""
        monkeypatch.undo()

    run_on_broker(tmp_path, run, exposeManagedCursorMetricsInPrometheus=True)
