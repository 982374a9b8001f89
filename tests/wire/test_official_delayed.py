"""The official client against our broker: delayed messages, chunked messages (rules of 3.6 and group 7)."""

from __future__ import annotations

import time
import urllib.request
from datetime import timedelta
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers.process import Server

from tests.wire.conftest import PATIENCE_MS, nothing_more, received, texts

Kind = pulsar.ConsumerType


@pytest.mark.parametrize("kind", [Kind.Shared, Kind.KeyShared], ids=lambda kind: kind.name)
def test_delayed_messages_come_by_their_time(client: Any, topic: str, kind: Any) -> None:
    """A message that is due within one tick is delivered at once, the others up to one tick early (rules 7.1, 7.2 and
    7.4)."""
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    began = time.monotonic()
    producer.send(b"later", deliver_after=timedelta(seconds=4), partition_key="k")
    producer.send(b"sooner", deliver_at=int(time.time() * 1000) + 2_500, partition_key="k")
    producer.send(b"now", partition_key="k")
    assert texts(received(consumer, 1)) == ["now"]
    assert texts(received(consumer, 1)) == ["sooner"]
    assert time.monotonic() - began > 1.4
    assert texts(received(consumer, 1)) == ["later"]
    assert time.monotonic() - began > 2.9
    nothing_more(consumer)


def test_exclusive_does_not_wait(client: Any, topic: str) -> None:
    """An Exclusive consumer receives delayed messages at once (rule 7.2)."""
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"m", deliver_after=timedelta(hours=1))
    assert texts(received(consumer, 1)) == ["m"]


def test_chunked_messages_over_two_shared_consumers(client: Any, topic: str) -> None:
    """Each chunked message arrives whole at one of two Shared consumers, in any mix of sizes (rules 3.6.2 and
    3.6.6)."""
    consumers = [client.subscribe(topic, "s", Kind.Shared, consumer_name=name, receiver_queue_size=3) for name in "ab"]
    producer = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    payloads = [bytes([65 + number]) * (2_500_000 if number % 2 else 10) for number in range(8)]
    for payload in payloads:
        producer.send(payload)
    got: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while len(got) < len(payloads) and time.monotonic() < deadline:
        for consumer in consumers:
            try:
                message = consumer.receive(100)
            except pulsar.Timeout:
                continue
            got.append(message.data())
            consumer.acknowledge(message)
    assert sorted(got) == sorted(payloads)


def test_a_delay_that_is_too_long_fails_its_message_and_no_other(server: Server, client: Any, topic: str) -> None:
    """A message with too long a delay fails: it is not stored, the client does not send it again for ever, and those
    around it succeed (rule 7.10)."""
    name = f"persistent://public/default/{topic}"
    rest = f"{server.http_url}/admin/v2/{name.replace('://', '/')}"
    consumer = client.subscribe(topic, "s", Kind.Shared)
    policy = b'{"active": true, "tickTime": 1000, "maxDeliveryDelayInMillis": 5000}'
    headers = {"content-type": "application/json"}
    urllib.request.urlopen(
        urllib.request.Request(f"{rest}/delayedDelivery", policy, headers, method="POST"), timeout=20
    )
    producer = client.create_producer(topic, batching_enabled=False)
    with pytest.raises(pulsar.PulsarException):
        producer.send(b"late", deliver_after=timedelta(hours=1))
    producer.send(b"now")
    answers: list[tuple[str, Any]] = []
    for number in range(40):
        late = {"deliver_after": timedelta(hours=1)} if number % 4 == 1 else {}
        what = str(number)
        producer.send_async(what.encode(), lambda result, _, what=what: answers.append((what, result)), **late)
    producer.flush()
    assert [what for what, _ in answers] == [str(number) for number in range(40)]
    failed = [what for what, result in answers if result != pulsar.Result.Ok]
    assert failed == [str(number) for number in range(1, 40, 4)]
    expected = ["now", *[what for what, result in answers if result == pulsar.Result.Ok]]
    assert texts(received(consumer, len(expected))) == expected
    nothing_more(consumer)
