"""Dead letters of the native client read by the official Python client, and the reverse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.servers.process import Server

import magnetar
from tests.wire.conftest import PATIENCE_MS

REFUSE_TWICE = """
import sys, pulsar
url, topic = sys.argv[1:]
policy = pulsar.ConsumerDeadLetterPolicy(1, initial_subscription_name="review")
consumer = pulsar.Client(url).subscribe(
    topic, "s", consumer_type=pulsar.ConsumerType.Shared,
    negative_ack_redelivery_delay_ms=100, dead_letter_policy=policy,
)
print("waits for messages", flush=True)
for _ in range(2):
    consumer.negative_acknowledge(consumer.receive(10_000))
sys.stdin.read()
"""


@contextmanager
def official_consumer_that_refuses(server: Server, topic: str) -> Iterator[None]:
    """Run the official client's consumer with a dead letter policy in a process of its own, and end it by a signal.

    pulsar-client 3.13.0 crashes in 7 of 100 runs where such a consumer closes while its dead letter is on its way.
    """
    command = [sys.executable, "-c", REFUSE_TWICE, server.broker_url, topic]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        # what it logs goes to the same place and may stand in the same line
        assert any("waits for messages" in line for line in child.stdout), "the official client did not subscribe"
        yield
    finally:
        child.kill()
        child.communicate()


def test_our_dead_letter_is_read_by_the_official_client(server: Server, client: Any, topic: str) -> None:
    """Payload, key, properties and event time arrive, and where it came from (rule 6.5.3)."""
    policy = magnetar.ConsumerDeadLetterPolicy(1, initial_subscription_name="review")
    with magnetar.Client(server.broker_url) as native:
        consumer = native.subscribe(
            topic, "s", magnetar.ConsumerType.Shared, dead_letter_policy=policy, negative_ack_redelivery_delay_ms=100
        )
        publish_one(client, topic)
        for _ in range(2):
            consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
        letter = client.subscribe(f"{topic}-s-DLQ", "review").receive(PATIENCE_MS)
        assert letter.event_timestamp() == 77
        assert_letter_of(letter, topic)


def test_a_dead_letter_of_the_official_client_is_read_by_ours(server: Server, client: Any, topic: str) -> None:
    """Payload, key and properties arrive, and where it came from (rule 6.5.3)."""
    with magnetar.Client(server.broker_url) as native, official_consumer_that_refuses(server, topic):
        publish_one(client, topic)
        assert_letter_of(native.subscribe(f"{topic}-s-DLQ", "review").receive(PATIENCE_MS), topic)


def publish_one(client: Any, topic: str) -> None:
    client.create_producer(topic).send(b"a", partition_key="k", properties={"x": "y"}, event_timestamp=77)


def assert_letter_of(letter: Any, topic: str) -> None:
    properties = letter.properties()
    assert (letter.data(), letter.partition_key(), properties["x"]) == (b"a", "k", "y")
    assert properties["REAL_TOPIC"] == f"persistent://public/default/{topic}"
    assert properties["ORIGIN_MESSAGE_ID"]
