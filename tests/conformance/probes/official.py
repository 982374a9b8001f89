"""What the official client makes of a broker, end to end."""

from __future__ import annotations

import re

import pulsar  # type: ignore[import-untyped]  # the official client carries no types

from tests.conformance.answers import Json, tried
from tests.conformance.probe import Broker, probe

MILLISECONDS = 5000


@probe("6.1.1", "3.5.1", "3.7.1")
def official_round_trip(broker: Broker) -> Json:
    """Publish and receive through the official client: plain, batched, with each compression."""
    client = broker.client()
    said: dict[str, Json] = {}
    for name in ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"):
        for batching in (False, True):
            topic = broker.topic(f"{name}-{batching}")
            consumer = client.subscribe(topic, "s")
            producer = client.create_producer(
                topic, compression_type=getattr(pulsar.CompressionType, name), batching_enabled=batching
            )
            for number in range(5):
                producer.send_async(
                    f"message {number}".encode(), None, properties={"n": str(number)}, partition_key="k"
                )
            producer.flush()
            got = [consumer.receive(MILLISECONDS) for _ in range(5)]
            said[f"{name}, {'batched' if batching else 'plain'}"] = [
                [each.data().decode(), each.properties(), each.partition_key()] for each in got
            ]
    return said


@probe("6.2.1", "6.2.3")
def official_negative_ack(broker: Broker) -> Json:
    """A negative ack through the official client: it comes again, counted."""
    client = broker.client()
    consumer = client.subscribe(
        broker.topic(), "s", consumer_type=pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=500
    )
    producer = client.create_producer(broker.topic())
    producer.send(b"m")
    counts = []
    for _ in range(3):
        message = consumer.receive(MILLISECONDS)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    return counts


@probe("5.3.1", "5.1.2")
def official_busy(broker: Broker) -> Json:
    """The exception classes for a busy subscription and a taken producer name."""
    client = broker.client()
    client.subscribe(broker.topic(), "s")
    client.create_producer(broker.topic(), producer_name="p")
    return {
        "exclusive": tried(lambda: client.subscribe(broker.topic(), "s")),
        "other type": tried(lambda: client.subscribe(broker.topic(), "s", consumer_type=pulsar.ConsumerType.Shared)),
        "producer name": tried(lambda: client.create_producer(broker.topic(), producer_name="p")),
        "topic name": tried(lambda: client.create_producer("persistent://a/b")),
        "namespace": tried(lambda: client.create_producer("persistent://public/oracle-missing/t")),
    }


@probe("6.9.1", "6.9.3")
def official_reader(broker: Broker) -> Json:
    """A reader from earliest over a plain and a partitioned topic; has_message_available."""
    client = broker.client()
    broker.topic_rest("PUT", "parted", "/partitions", 3)
    said: dict[str, Json] = {}
    for name in ("plain", "parted"):
        producer = client.create_producer(broker.topic(name))
        for number in range(6):
            producer.send(str(number).encode())
        reader = client.create_reader(broker.topic(name), pulsar.MessageId.earliest)
        got = []
        while reader.has_message_available():
            got.append(reader.read_next(MILLISECONDS).data().decode())
        said[name] = sorted(got)
    return said


@probe("5.9.1", "5.9.2")
def official_seek(broker: Broker) -> Json:
    """Seek by id and to the beginning through the official client."""
    client = broker.client()
    consumer = client.subscribe(broker.topic(), "s")
    producer = client.create_producer(broker.topic())
    ids = [producer.send(str(number).encode()) for number in range(6)]
    said = {}
    for name, target in {"id of 2": ids[2], "earliest": pulsar.MessageId.earliest}.items():
        consumer.seek(target)
        said[name] = consumer.receive(MILLISECONDS).data().decode()
    return said


@probe("6.8.2", "2.17")
def official_pattern(broker: Broker) -> Json:
    """A regex subscription over plain and partitioned topics."""
    client = broker.client()
    broker.topic_rest("PUT", "a-parted", "/partitions", 2)
    for name in ("a-plain", "b-plain"):
        client.create_producer(broker.topic(name))
    consumer = client.subscribe(re.compile(f"persistent://public/default/{broker.probe_id}-a-.*"), "s")
    for name in ("a-parted", "a-plain", "b-plain"):
        client.create_producer(broker.topic(name)).send(name.encode())
    got = [tried(lambda: consumer.receive(2000).data().decode()) for _ in range(3)]
    return sorted(got)
