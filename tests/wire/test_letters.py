"""Dead letters of the native client read by the official Python client, and the reverse."""

from __future__ import annotations

from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers.process import Server

import magnetar
from tests.wire.conftest import PATIENCE_MS

ORIGIN = ("REAL_TOPIC", "ORIGIN_MESSAGE_ID")


@pytest.mark.parametrize("ours", [True, False])
def test_a_dead_letter_of_one_is_read_by_the_other(server: Server, client: Any, topic: str, ours: bool) -> None:
    """Payload, key and properties arrive, and where it came from (rule 6.5.3)."""
    full = f"persistent://public/default/{topic}"
    options: Any = {"negative_ack_redelivery_delay_ms": 100}
    with magnetar.Client(server.broker_url) as native:
        if ours:
            policy = magnetar.ConsumerDeadLetterPolicy(1, initial_subscription_name="review")
            consumer: Any = native.subscribe(
                topic, "s", magnetar.ConsumerType.Shared, dead_letter_policy=policy, **options
            )
        else:
            official = pulsar.ConsumerDeadLetterPolicy(1, initial_subscription_name="review")
            consumer = client.subscribe(
                topic, "s", consumer_type=pulsar.ConsumerType.Shared, dead_letter_policy=official, **options
            )
        client.create_producer(topic).send(b"a", partition_key="k", properties={"x": "y"}, event_timestamp=77)
        for _ in range(2):
            consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
        dead = f"{topic}-s-DLQ"
        if ours:
            found = client.subscribe(dead, "review").receive(PATIENCE_MS)
            assert found.event_timestamp() == 77
        else:
            found = native.subscribe(dead, "review").receive(PATIENCE_MS)
        properties = found.properties()
        assert (found.data(), found.partition_key(), properties["x"]) == (b"a", "k", "y")
        assert properties["REAL_TOPIC"] == full and all(properties[name] for name in ORIGIN)
        consumer.close()
