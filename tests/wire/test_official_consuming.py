"""The official client against our broker: subscriptions, acknowledgement, redelivery, seek, readers."""

from __future__ import annotations

import contextlib
import re
import time
import urllib.request
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers.process import HOST, Server

from tests.conformance.wire import Wire, checked, command, frame
from tests.wire.conftest import PATIENCE_MS, connected, nothing_more, publish, received, texts

Kind = pulsar.ConsumerType
UNREADABLE = checked(b"\0\0\0\x08" + b"\xff" * 8 + b"payload")
"""An entry with the right checksum whose metadata are no protobuf."""


@pytest.mark.parametrize(
    "kind", [Kind.Exclusive, Kind.Shared, Kind.Failover, Kind.KeyShared], ids=lambda kind: kind.name
)
def test_what_was_not_acknowledged_comes_again(client: Any, topic: str, kind: Any) -> None:
    """What a consumer did not acknowledge goes to the next one, and only that (rules 5.3.3, 5.5.4 and 5.9.14)."""
    first = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    publish(producer, 10, partition_key="k")
    got = received(first, 10)
    assert texts(got) == [str(number) for number in range(10)]
    for message in got[:7]:
        first.acknowledge(message)
    first.close()
    second = client.subscribe(topic, "s", kind)
    assert texts(received(second, 3)) == ["7", "8", "9"]
    nothing_more(second)


def test_exclusive_is_busy_and_failover_takes_over(client: Any, topic: str) -> None:
    """A second Exclusive consumer is refused, a second Failover consumer takes over when the first leaves (rules 5.3.1
    and 5.4.8)."""
    client.subscribe(topic, "exclusive")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "exclusive")
    consumers = [client.subscribe(topic, "failover", Kind.Failover, consumer_name=name) for name in "ab"]
    producer = client.create_producer(topic)
    publish(producer, 5)
    active, got = _whoever_gets(consumers)
    assert texts([got, *received(active, 4)]) == [str(number) for number in range(5)]
    active.acknowledge_cumulative(got)
    active.close()
    (waiting,) = [consumer for consumer in consumers if consumer is not active]
    assert texts(received(waiting, 4)) == ["1", "2", "3", "4"]


def test_what_is_too_long_is_refused_with_its_reason_and_not_repeated(client: Any, topic: str) -> None:
    """Refusals carry a code that the client reports at once instead of repeating the request for 30 seconds."""
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe(topic, "s" * 4097)
    with pytest.raises(pulsar.NotAllowedError):
        client.create_producer(topic, properties={"k": "v" * 65536})


@pytest.mark.parametrize(
    "kind", [Kind.Exclusive, Kind.Shared, Kind.Failover, Kind.KeyShared], ids=lambda kind: kind.name
)
def test_a_message_that_no_client_can_read_ends_one_connection_only(
    server: Server, client: Any, topic: str, kind: Any
) -> None:
    """The client closes its connection at such a message, comes back, and gets the ones after it (decision 070)."""
    consumer = client.subscribe(topic, "s", kind)
    producer = connected(server).create_producer(topic)
    publish(producer, 2)
    with Wire.open((HOST, server.broker_port)) as wire:
        wire.connect()
        wire.request("PRODUCER", topic=topic, producer_id=1)
        for sequence_id in range(3):
            wire.write(frame(command("SEND", producer_id=1, sequence_id=sequence_id), UNREADABLE))
            wire.receive("SEND_RECEIPT")
    publish(producer, 3)
    seen: set[str] = set()
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while "2" not in seen and time.monotonic() < deadline:
        with contextlib.suppress(pulsar.Timeout):
            message = consumer.receive(1000)
            consumer.acknowledge(message)
            seen.update(texts([message]))
    assert seen == {"0", "1", "2"}


def _whoever_gets(consumers: list[Any]) -> tuple[Any, Any]:
    for _ in range(100):
        for consumer in consumers:
            try:
                return consumer, consumer.receive(100)
            except pulsar.Timeout:
                continue
    raise AssertionError("no consumer received anything")


def test_shared_spreads_and_key_shared_keeps_keys_together(client: Any, topic: str) -> None:
    """Shared spreads messages over its consumers, Key_Shared gives all messages of a key to one (rules 5.5.3 and
    5.6.15)."""
    shared = [client.subscribe(topic, "shared", Kind.Shared) for _ in range(2)]
    keyed = [client.subscribe(topic, "keyed", Kind.KeyShared) for _ in range(2)]
    producer = client.create_producer(topic)
    for number in range(100):
        producer.send_async(str(number).encode(), None, partition_key=f"k{number % 10}")
    producer.flush()
    spread = [_drained(consumer) for consumer in shared]
    assert all(spread) and sorted(spread[0] + spread[1], key=int) == [str(number) for number in range(100)]
    by_key = [_drained(consumer) for consumer in keyed]
    keys = [{int(text) % 10 for text in got} for got in by_key]
    assert all(keys) and not keys[0] & keys[1] and len(by_key[0]) + len(by_key[1]) == 100
    assert all(got == sorted(got, key=int) for got in by_key)


def _drained(consumer: Any) -> list[str]:
    got = []
    try:
        while True:
            got.append(consumer.receive(500))
    except pulsar.Timeout:
        return texts(got)


def test_negative_acknowledgement_counts(client: Any, topic: str) -> None:
    """A message that was acknowledged negatively comes again with its redelivery count (rule 5.8.3)."""
    consumer = client.subscribe(topic, "s", Kind.Shared, negative_ack_redelivery_delay_ms=100)
    publish(client.create_producer(topic), 1)
    counts = []
    for _ in range(3):
        (message,) = received(consumer, 1)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    assert counts == [0, 1, 2]


def test_a_batch_is_acknowledged_in_part(client: Any, topic: str) -> None:
    """Acknowledged messages of a batch are not delivered again, the rest of the batch is (rules 5.7.7 and 5.7.8)."""
    options = {"batch_index_ack_enabled": True, "consumer_type": Kind.Shared}
    consumer = client.subscribe(topic, "s", **options)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=1000)
    for number in range(10):
        producer.send_async(str(number).encode(), None)
    producer.flush()
    got = received(consumer, 10)
    assert {message.message_id().entry_id() for message in got} == {got[0].message_id().entry_id()}
    for message in got[::2]:
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s", **options)
    assert texts(received(again, 5)) == ["1", "3", "5", "7", "9"]
    nothing_more(again)


def test_seek_by_id_and_by_time(client: Any, topic: str) -> None:
    """A seek by id or by time goes to its message, which the client itself drops unless it asked for it (rules 5.9.1
    and 5.9.2)."""
    consumer = client.subscribe(topic, "s", start_message_id_inclusive=True)
    producer = client.create_producer(topic)
    ids = publish(producer, 3)
    time.sleep(0.05)
    moment = round(time.time() * 1000)
    time.sleep(0.05)
    ids += publish(producer, 2)
    received(consumer, 5)
    consumer.seek(ids[1])
    assert texts(received(consumer, 4)) == ["1", "2", "0", "1"]
    consumer.seek(moment)
    assert texts(received(consumer, 2)) == ["0", "1"]
    consumer.seek(pulsar.MessageId.earliest)
    assert len(received(consumer, 5)) == 5
    consumer.seek(pulsar.MessageId.latest)
    nothing_more(consumer)


def test_readers_start_anywhere_and_know_whether_there_are_more(client: Any, topic: str) -> None:
    """A reader starts at the first message, after a message or at one, and knows whether there are more (rules 4.3.6
    and 5.9.12)."""
    producer = client.create_producer(topic, batching_enabled=True)
    for number in range(6):
        producer.send_async(str(number).encode(), None)
    producer.flush()
    ids = publish(producer, 3)
    for start, inclusive, expected in (
        (pulsar.MessageId.earliest, False, 9),
        (ids[0], False, 2),
        (ids[0], True, 3),
        (pulsar.MessageId.latest, False, 0),
    ):
        reader = client.create_reader(topic, start, start_message_id_inclusive=inclusive)
        got = []
        while reader.has_message_available():
            got.append(reader.read_next(PATIENCE_MS))
        assert len(got) == expected, start
        reader.close()


def test_unsubscribe(client: Any, topic: str) -> None:
    """UNSUBSCRIBE by the last consumer deletes the subscription (rules 5.9.9 and 5.9.16)."""
    consumer = client.subscribe(topic, "s", Kind.Shared)
    other = client.subscribe(topic, "s", Kind.Shared)
    with pytest.raises(pulsar.PulsarException):
        consumer.unsubscribe()
    other.close()
    consumer.unsubscribe()
    publish(client.create_producer(topic), 1)
    nothing_more(client.subscribe(topic, "s", Kind.Shared))


def partitioned(server: Server, topic: str, count: int) -> None:
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/partitions"
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, str(count).encode(), headers, method="PUT"), timeout=10).close()


def test_partitions_and_patterns(server: Server, client: Any, topic: str) -> None:
    """One consumer object receives from all partitions, and from all topics that match a pattern (rules 5.1.9, 6.7.1,
    6.8.2)."""
    partitioned(server, f"{topic}-parted", 3)
    assert len(client.get_topic_partitions(f"{topic}-parted")) == 3
    everything = client.subscribe(re.compile(f"persistent://public/default/{topic}-.*"), "pattern", Kind.Shared)
    consumer = client.subscribe(f"{topic}-parted", "s", Kind.Shared)
    producer = client.create_producer(f"{topic}-parted")
    publish(producer, 9)
    got = received(consumer, 9)
    assert {message.message_id().partition() for message in got} == {0, 1, 2}
    assert sorted(texts(got)) == [str(number) for number in range(9)]
    assert sorted(texts(received(everything, 9))) == [str(number) for number in range(9)]


def test_a_pattern_finds_plain_topics(client: Any, topic: str) -> None:
    for name in ("a", "b"):
        client.create_producer(f"{topic}-{name}")
    consumer = client.subscribe(re.compile(f"persistent://public/default/{topic}-[ab]"), "s")
    for name in ("a", "b", "c"):
        client.create_producer(f"{topic}-{name}").send(name.encode())
    assert sorted(texts(received(consumer, 2))) == ["a", "b"]
    nothing_more(consumer)


def test_a_connection_that_goes_leaves_its_messages_to_others(server: Server, client: Any, topic: str) -> None:
    """What the consumers of a lost connection did not acknowledge goes to the others (rule 5.5.4)."""
    goes = connected(server)
    first = goes.subscribe(topic, "s", Kind.Shared)
    publish(client.create_producer(topic), 5)
    received(first, 5)
    second = client.subscribe(topic, "s", Kind.Shared)
    goes.close()
    assert sorted(texts(received(second, 5))) == [str(number) for number in range(5)]
