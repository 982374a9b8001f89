"""The official client against our broker: batches, compression, sizes, chunks, and a broker that dies meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers import magnetar
from tools.servers.process import Server, free_ports

from tests.wire.conftest import SETTINGS, connected, nothing_more, received, texts

LIMIT = int(SETTINGS["maxMessageSize"])
CODECS = [getattr(pulsar.CompressionType, name) for name in ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")]


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_compression(client: Any, topic: str, codec: Any, batching: bool) -> None:
    """Properties, keys and empty payloads of compressed and plain batches arrive unchanged (rule 3.7.1)."""
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, compression_type=codec, batching_enabled=batching)
    # the client's own zlib refuses to unpack nothing into nothing
    empty = b"" if batching or codec is not pulsar.CompressionType.ZLib else b"-"
    payloads = [empty, b"x", b"abc" * 10_000]
    for number, payload in enumerate(payloads):
        producer.send_async(payload, None, properties={"n": str(number)}, partition_key=f"k{number}")
    producer.flush()
    got = received(consumer, 3)
    assert [message.data() for message in got] == payloads
    assert [message.properties() for message in got] == [{"n": str(number)} for number in range(3)]
    assert [message.partition_key() for message in got] == ["k0", "k1", "k2"]


def test_sizes_up_to_the_limit(client: Any, topic: str) -> None:
    """The limit that CONNECTED advertises counts metadata and payload together (rules 1.1.8 and 3.3.8)."""
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    sizes = [1, 100_000, LIMIT - 200]
    for size in sizes:
        producer.send(bytes(size))
    assert [len(message.data()) for message in received(consumer, 3)] == sizes
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(bytes(LIMIT + 1))


@pytest.mark.parametrize(
    "kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared], ids=lambda kind: kind.name
)
def test_chunks(client: Any, topic: str, kind: Any) -> None:
    """A message of several chunks arrives whole, between small messages (rule 3.6.2)."""
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic, chunking_enabled=True)
    payloads = [b"before", os.urandom(LIMIT * 3 + 17), b"after"]
    for payload in payloads:
        producer.send(payload)
    got = received(consumer, 3)
    # a Shared subscription promises the messages, not their order
    assert sorted(message.data() for message in got) == sorted(payloads)
    for message in got:
        consumer.acknowledge(message)
    consumer.close()
    nothing_more(client.subscribe(topic, "s", kind))


def test_receipts_of_many_batches_in_order(client: Any, topic: str) -> None:
    """Receipts of batches come in order and complete the callbacks of all their messages (rules 1.1.12 and 3.5.9)."""
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=7, max_pending_messages=5000)
    receipts: list[tuple[Any, tuple[int, int, int]]] = []
    for number in range(1000):
        producer.send_async(
            str(number).encode(),
            lambda result, id_: receipts.append((result, (id_.ledger_id(), id_.entry_id(), id_.batch_index()))),
        )
    producer.flush()
    assert {result for result, _ in receipts} == {pulsar.Result.Ok}
    assert [place for _, place in receipts] == sorted(place for _, place in receipts)
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    assert texts(received(consumer, 1000)) == [str(number) for number in range(1000)]


class Mortal:
    """A broker on fixed ports that can be killed and started again on what it left."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = free_ports(2)
        self.server = self._start()

    def _start(self) -> Server:
        broker_port, http_port = self.ports
        return magnetar.start(self.directory, settings=SETTINGS, broker_port=broker_port, http_port=http_port)

    def die(self) -> None:
        assert self.server.process is not None
        os.killpg(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()

    def rise(self) -> None:
        self.server = self._start()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    broker = Mortal(tmp_path)
    yield broker
    broker.server.stop()


@pytest.mark.parametrize("batching", [False, True], ids=["plain", "batched"])
def test_a_broker_that_is_killed_and_comes_back(mortal: Mortal, batching: bool) -> None:
    """Messages without a receipt are sent again in order, nothing is lost, and consumers go on by themselves.

    Without deduplication an entry that was stored and not receipted is there twice, so first occurrences count.
    """
    count = 6000
    client = connected(mortal.server)
    consumer = client.subscribe("t", "follows")
    producer = client.create_producer(
        "t", batching_enabled=batching, batching_max_messages=20, max_pending_messages=500, block_if_queue_full=True
    )
    results: list[Any] = []
    under_way, killed = threading.Event(), threading.Event()

    def receipted(result: Any, _: Any) -> None:
        results.append(result)
        if len(results) > 500:
            under_way.set()

    def send() -> None:
        for number in range(count):
            if number == 2000:
                killed.wait(30)
            producer.send_async(str(number).encode(), receipted)
        producer.flush()

    sender = threading.Thread(target=send)
    sender.start()
    assert under_way.wait(30)
    mortal.die()
    killed.set()
    mortal.rise()
    sender.join(30)
    assert not sender.is_alive()
    assert len(results) == count and set(results) == {pulsar.Result.Ok}

    expected = [str(number) for number in range(count)]
    late = client.subscribe("t", "late", initial_position=pulsar.InitialPosition.Earliest)
    for each in (late, consumer):
        seen: dict[str, None] = {}
        while len(seen) < count:
            seen.setdefault(each.receive(10_000).data().decode())
        assert list(seen) == expected
    client.close()
