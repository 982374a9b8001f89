"""What a clean client must still be able to do, whatever happened before: a complete functional check."""

from __future__ import annotations

import re
from typing import Any, Final

import pulsar  # type: ignore[import-untyped]  # the official client carries no types

from tests.hostile.raw_websocket import PRODUCER, READER, RawWebSocket
from tests.hostile.victim import Target
from tests.support.websocket_frames import TEXT, ws_frame

_PATIENCE_MS: Final = 20_000
_KINDS: Final = (
    pulsar.ConsumerType.Exclusive,
    pulsar.ConsumerType.Shared,
    pulsar.ConsumerType.Failover,
    pulsar.ConsumerType.KeyShared,
)


def check(url: str, target: Target, name: str) -> None:
    """Raises AssertionError or a pulsar exception that names what does not work any more."""
    client = pulsar.Client(url, operation_timeout_seconds=20, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        for kind in _KINDS:
            _publish_and_consume(client, f"clean-{name}-{kind.name.lower()}", kind)
        _seek(client, f"clean-{name}-seek")
        _partitioned(client, target, f"clean-{name}-partitioned")
        _pattern(client, f"clean-{name}-pattern")
        _schema(client, f"clean-{name}-schema")
        _reader(client, f"clean-{name}-reader")
        _non_persistent(client, f"non-persistent://public/default/clean-{name}")
    finally:
        client.close()
    _rest(target, f"clean-{name}-rest")
    _websocket(target, f"clean-{name}-websocket")


def _publish_and_consume(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "clean", consumer_type=kind, negative_ack_redelivery_delay_ms=100)
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(20):
        producer.send(str(number).encode(), partition_key=str(number % 3))
    nacked = False
    got: list[int] = []
    while len(got) < 20:
        message = consumer.receive(_PATIENCE_MS)
        number = int(message.data())
        if number == 7 and not nacked and kind in (pulsar.ConsumerType.Shared, pulsar.ConsumerType.KeyShared):
            nacked = True
            consumer.negative_acknowledge(message)
            continue
        got.append(number)
        consumer.acknowledge(message)
    assert sorted(got) == list(range(20)), f"{topic}: {got}"
    consumer.unsubscribe()
    producer.close()


def _seek(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "clean")
    producer = client.create_producer(topic, batching_enabled=False)
    ids = [producer.send(str(number).encode()) for number in range(10)]
    for _ in range(10):
        consumer.acknowledge_cumulative(consumer.receive(_PATIENCE_MS))
    consumer.seek(ids[4])
    assert int(consumer.receive(_PATIENCE_MS).data()) in (4, 5), topic
    consumer.seek(pulsar.MessageId.earliest)
    assert int(consumer.receive(_PATIENCE_MS).data()) == 0, topic
    assert consumer.get_last_message_id().entry_id() == ids[-1].entry_id(), topic
    consumer.close()


def _partitioned(client: Any, target: Target, topic: str) -> None:
    status, answer = target.rest("PUT", f"/admin/v2/persistent/public/default/{topic}/partitions", 3)
    assert status == 204, answer
    consumer = client.subscribe(topic, "clean", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    for number in range(30):
        producer.send_async(str(number).encode(), lambda *_: None, partition_key=str(number))
    producer.flush()
    got = []
    for _ in range(30):
        message = consumer.receive(_PATIENCE_MS)
        got.append(int(message.data()))
        consumer.acknowledge(message)
    assert sorted(got) == list(range(30)), topic
    consumer.close()


def _pattern(client: Any, topic: str) -> None:
    producers = [client.create_producer(f"{topic}-{number}") for number in range(2)]
    consumer = client.subscribe(
        re.compile(f"persistent://public/default/{topic}-.*"), "clean", initial_position=pulsar.InitialPosition.Earliest
    )
    for producer in producers:
        producer.send(b"m")
    for _ in producers:
        consumer.acknowledge(consumer.receive(_PATIENCE_MS))
    consumer.close()


def _schema(client: Any, topic: str) -> None:
    class Measured(pulsar.schema.Record):  # type: ignore[misc]  # the official client carries no types
        a = pulsar.schema.Integer()

    schema = pulsar.schema.JsonSchema(Measured)
    consumer = client.subscribe(topic, "clean", schema=schema)
    client.create_producer(topic, schema=schema).send(Measured(a=5))
    assert consumer.receive(_PATIENCE_MS).value().a == 5, topic
    consumer.close()


def _reader(client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    for number in range(5):
        producer.send(str(number).encode())
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert [int(reader.read_next(_PATIENCE_MS).data()) for _ in range(5)] == list(range(5)), topic
    assert not reader.has_message_available(), topic


def _non_persistent(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "clean")
    client.create_producer(topic).send(b"m")
    assert consumer.receive(_PATIENCE_MS).data() == b"m", topic


def _rest(target: Target, topic: str) -> None:
    base = f"/admin/v2/persistent/public/default/{topic}"
    for method, path, body, wanted in (
        ("PUT", base, None, 204),
        ("PUT", f"{base}/subscription/s", None, 204),
        ("GET", f"{base}/stats", None, 200),
        ("GET", f"{base}/internalStats", None, 200),
        ("POST", f"{base}/subscription/s/skip_all", None, 204),
        ("DELETE", f"{base}/subscription/s", None, 204),
        ("DELETE", base, None, 204),
        ("GET", "/admin/v2/persistent/public/default", None, 200),
        ("GET", "/admin/v2/brokers/health", None, 200),
        ("GET", "/metrics", None, 200),
        ("GET", "/openapi.json", None, 200),
    ):
        status, answer = target.rest(method, path, body)
        assert status == wanted, f"{method} {path}: {status} {str(answer)[:300]}"


def _websocket(target: Target, topic: str) -> None:
    with RawWebSocket(target.http_port, PRODUCER + topic) as producer:
        producer.say(ws_frame(TEXT, b'{"payload":"eA=="}'))
        assert producer.hear()["result"] == "ok", topic
    with RawWebSocket(target.http_port, f"{READER}{topic}?messageId=earliest") as reader:
        assert reader.hear()["payload"] == "eA==", topic
