"""The official client against our broker: non-persistent topics, and patterns over both domains."""

from __future__ import annotations

import re
import urllib.request
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers.process import Server

from tests.wire.conftest import PATIENCE_MS, nothing_more, publish, received, texts

Kind = pulsar.ConsumerType
Modes = pulsar.RegexSubscriptionMode


def put(server: Server, path: str, body: bytes) -> None:
    """A REST call that has to succeed."""
    url = f"http://127.0.0.1:{server.http_port}/admin/v2/{path}"
    request = urllib.request.Request(url, body, {"content-type": "application/json"}, method="PUT")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 204


@pytest.mark.parametrize(
    "kind", [Kind.Exclusive, Kind.Shared, Kind.Failover, Kind.KeyShared], ids=lambda kind: kind.name
)
def test_messages_pass_to_who_is_there(client: Any, topic: str, kind: Any) -> None:
    """Messages reach connected subscribers only, with ids 0:0 (rules 13.2, 13.5 and 13.6)."""
    name = f"non-persistent://public/default/{topic}"
    producer = client.create_producer(name)
    publish(producer, 3)
    consumer = client.subscribe(name, "s", kind, initial_position=pulsar.InitialPosition.Earliest)
    nothing_more(consumer)
    ids = publish(producer, 20, partition_key="k")
    got = received(consumer, 20)
    assert texts(got) == [str(number) for number in range(20)]
    assert {(id_.ledger_id(), id_.entry_id()) for id_ in ids} == {(0, 0)}
    for message in got[:10]:
        consumer.acknowledge(message)
    consumer.negative_acknowledge(got[11])
    consumer.redeliver_unacknowledged_messages()
    nothing_more(consumer)
    assert {message.redelivery_count() for message in got} == {0}
    consumer.unsubscribe()


def test_batches_and_partitions_pass(client: Any, server: Server, topic: str) -> None:
    put(server, f"non-persistent/public/default/{topic}/partitions", b"3")
    name = f"non-persistent://public/default/{topic}"
    consumer = client.subscribe(name, "s", Kind.Shared)
    producer = client.create_producer(
        name, batching_enabled=True, batching_max_publish_delay_ms=5,
        message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
    )  # fmt: skip
    for number in range(60):
        producer.send_async(str(number).encode(), callback=lambda *_: None)
    producer.flush()
    assert sorted(texts(received(consumer, 60)), key=int) == [str(number) for number in range(60)]


def test_a_pattern_consumer_finds_topics_of_its_mode(client: Any, server: Server, topic: str) -> None:
    """A pattern consumer finds the non-persistent topics, partitions included; this client looks for later ones once a
    minute (rules 2.16 and 6.8.2)."""
    pattern = re.compile(f"public/default/{topic}-.*")
    put(server, f"persistent/public/default/{topic}-p/partitions", b"3")
    names = (f"persistent://public/default/{topic}-a", f"non-persistent://public/default/{topic}-b")
    producers = [client.create_producer(name) for name in names]
    producers.append(client.create_producer(f"persistent://public/default/{topic}-p-partition-2"))
    expected = {Modes.PersistentOnly: {"0", "2"}, Modes.NonPersistentOnly: {"1"}, Modes.AllTopics: {"0", "1", "2"}}
    consumers = {
        mode: client.subscribe(pattern, f"s-{mode.name}", Kind.Shared, regex_subscription_mode=mode)
        for mode in expected
    }
    for number, producer in enumerate(producers):
        producer.send(str(number).encode())
    for mode, consumer in consumers.items():
        assert {consumer.receive(PATIENCE_MS).data().decode() for _ in expected[mode]} == expected[mode]
        nothing_more(consumer)
