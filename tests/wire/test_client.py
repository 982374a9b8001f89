"""Our blocking client against our broker, with the official client as witness."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.bulk.positions import first_position, last_position
from magnetar.client.bulk.range_reader import RangeReader
from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import START, ReadPosition
from magnetar.protocol.compression import CompressionType
from tests.support.batch_writer import BatchWriter
from tests.support.columns import Columns
from tests.support.live_broker import LiveBroker, live_broker

pulsar = pytest.importorskip("pulsar")
NAMESPACE = "persistent://public/default"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def lookup(broker: LiveBroker) -> Iterator[Lookup]:
    with Lookup(broker.url, timeout=10) as made:
        yield made


@pytest.fixture
def official(broker: LiveBroker) -> Iterator[Any]:
    client = pulsar.Client(broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    client.close()


def publish(lookup: Lookup, topic: str, values: list[bytes], first: int = 0, **options: Any) -> None:
    with Producer(lookup, topic) as producer:
        writer = BatchWriter(producer.name, **options)
        keys = [b"k%d" % (index % 3) for index in range(len(values))]
        for batch in writer.pack(1, values, range(first, first + len(values)), keys, [9] * len(values)):
            producer.send(*batch)
        producer.flush()
        assert producer.messages_confirmed == len(values)


def read(lookup: Lookup, topic: str, start: ReadPosition = START, end: ReadPosition | None = None) -> Columns:
    columns = Columns()
    for chunk in RangeReader(lookup, topic, start, end or last_position(lookup, topic)):
        for ledger, entry, data in chunk:
            columns.add(ledger, entry, data)
    return columns


@pytest.mark.parametrize("kind", list(CompressionType))
def test_the_official_client_reads_what_we_send(lookup: Lookup, official: Any, kind: CompressionType) -> None:
    topic = f"{NAMESPACE}/sent-{kind.name}"
    consumer = official.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    values = [b"value %d" % index for index in range(25)]
    publish(lookup, topic, values, compression=kind, max_messages=10)
    found = [consumer.receive(10_000) for _ in values]
    assert [message.data() for message in found] == values
    assert [message.partition_key() for message in found[:4]] == ["k0", "k1", "k2", "k0"]
    assert {message.event_timestamp() for message in found} == {9}
    assert [message.message_id().batch_index() for message in found[8:12]] == [8, 9, 0, 1]
    consumer.close()


@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("kind", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_we_read_what_the_official_client_sends(lookup: Lookup, official: Any, kind: str, batching: bool) -> None:
    topic = f"{NAMESPACE}/received-{kind}-{batching}"
    producer = official.create_producer(
        topic,
        producer_name="official",
        batching_enabled=batching,
        compression_type=getattr(pulsar.CompressionType, kind),
    )
    for index in range(30):
        producer.send_async(
            b"v%d" % index, None, partition_key=f"k{index}", properties={"n": str(index)}, event_timestamp=index
        )
    producer.flush()
    producer.close()
    found = read(lookup, topic)
    numbers = range(30)
    assert found.values == [b"v%d" % index for index in numbers]
    assert found.keys == [b"k%d" % index for index in numbers]
    assert found.properties == [(("n", str(index)),) for index in numbers]
    assert found.event_times == list(numbers)
    assert found.sequence_ids == list(numbers)
    assert (len(found.entries) < 30) == batching
    assert {row.producer_name for row in found.entries} == {"official"}


def test_entries_larger_than_what_the_socket_takes_arrive_whole(lookup: Lookup) -> None:
    topic = f"{NAMESPACE}/large"
    values = [bytes([index]) * 700_000 for index in range(12)] + [b"", b"small"]
    publish(lookup, topic, values, max_messages=1, max_bytes=1 << 20)
    assert list(read(lookup, topic).values) == values


def test_ranges_meet_without_gap_or_overlap(lookup: Lookup) -> None:
    topic = f"{NAMESPACE}/ranges"
    publish(lookup, topic, [b"%d" % index for index in range(100)], max_messages=10)
    end = last_position(lookup, topic)
    assert end.entry == 10
    assert first_position(lookup, topic) == ReadPosition(end.ledger, 0)
    borders = [START, *(ReadPosition(end.ledger, entry) for entry in (1, 4, 9)), end]
    found = [value for start, stop in itertools.pairwise(borders) for value in read(lookup, topic, start, stop).values]
    assert found == [b"%d" % index for index in range(100)]
    with pytest.raises(DataLossError, match="failOnDataLoss"):
        read(lookup, topic, end, end._replace(entry=end.entry + 5))


def test_a_missing_topic_is_refused_with_its_name(lookup: Lookup) -> None:
    with pytest.raises(RefusedError, match="TopicNotFound"):
        last_position(lookup, f"{NAMESPACE}/not-there")
    assert lookup.partition_count(f"{NAMESPACE}/not-there-either", create=True) == 0


def test_a_checkpoint_subscription_stays_until_it_is_moved(lookup: Lookup) -> None:
    topic = f"{NAMESPACE}/anchored"
    publish(lookup, topic, [b"before"] * 5, max_messages=1)
    subscription = CheckpointSubscription(lookup, topic, "subscription")
    first = subscription.hold(None)
    publish(lookup, topic, [b"after"] * 5, max_messages=1)
    other = CheckpointSubscription(lookup, topic, "subscription")
    assert other.hold(None) == first == ReadPosition(first.ledger, 5)
    # The subscription exists, so where a new one would begin does not matter.
    assert other.hold(START) == first
    assert other.last() == ReadPosition(first.ledger, 10)
    assert read(lookup, topic, first, other.last()).values == [b"after"] * 5
    subscription.move_to(ReadPosition(first.ledger, 8))
    assert other.hold(None) == ReadPosition(first.ledger, 8)
    subscription.close()
    other.close()
    fourth = ReadPosition(first.ledger, 4)
    with (
        CheckpointSubscription(lookup, topic, "from-start") as early,
        CheckpointSubscription(lookup, topic, "from-four") as late,
    ):
        assert early.hold(START) <= ReadPosition(first.ledger, 0)
        assert late.hold(fourth) == fourth
        assert late.hold(None) == fourth


def test_two_holders_of_one_checkpoint_subscription_are_in_the_log(
    lookup: Lookup, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"{NAMESPACE}/shared-by-two"
    publish(lookup, topic, [b"before"], max_messages=1)
    with (
        CheckpointSubscription(lookup, topic, "one") as first,
        CheckpointSubscription(lookup, topic, "one") as second,
        CheckpointSubscription(lookup, topic, "two") as alone,
    ):
        said: list[str] = []
        end = time.monotonic() + 20
        while not said and time.monotonic() < end:
            for each in (first, alone, second):
                each.hold(START)
            said = [one for one in caplog.messages if "has another consumer" in one]
    assert len(said) == 1, "of one of the two holders, and not of the subscription that has one"
    assert said[0].startswith(f"subscription one of {topic} has another consumer")


def test_a_killed_broker_costs_nothing_but_time(tmp_path: Path) -> None:
    """Subscription, reader and producer go on with the broker's next life."""
    topic = f"{NAMESPACE}/killed"
    with live_broker(tmp_path) as broker, Lookup(broker.url, timeout=20) as lookup:
        subscription = CheckpointSubscription(lookup, topic, "subscription")
        assert subscription.hold(START)[1:] == (0, 0)
        with Producer(lookup, topic) as producer:
            batches = list(
                BatchWriter(producer.name, max_messages=1).pack(1, [b"%d" % n for n in range(20)], range(20))
            )
            for batch in batches[:10]:
                producer.send(*batch)
            producer.flush()
            broker.end(signal.SIGKILL)
            broker.start()
            for batch in batches[10:]:
                producer.send(*batch)
            producer.flush()
            assert producer.messages_confirmed == 20
        end = subscription.last()
        reader = iter(RangeReader(lookup, topic, START, end))
        found = [int(value or b"") for value in read(lookup, topic, START, end).values]
        assert sorted(set(found)) == list(range(20))
        assert next(reader)
        broker.end(signal.SIGKILL)
        broker.start()
        assert last_position(lookup, topic) == end
        subscription.move_to(end)
        assert subscription.hold(None) == end
        subscription.close()
        reader.close()  # type: ignore[attr-defined]  # it is a generator


def test_a_quiet_client_is_let_in_again(tmp_path: Path) -> None:
    """The broker cuts off a client that does not answer PING, and the next use connects anew (rule 1.3.10)."""
    with live_broker(tmp_path, keepAliveIntervalSeconds=1) as broker, Lookup(broker.url, timeout=10) as lookup:
        topic = f"{NAMESPACE}/quiet"
        subscription = CheckpointSubscription(lookup, topic, "subscription")
        subscription.hold(START)
        with Producer(lookup, topic, "named") as producer:
            batches = list(BatchWriter("named", max_messages=1).pack(1, [b"a", b"b"], [0, 1]))
            producer.send(*batches[0])
            producer.flush()
            time.sleep(3.5)
            producer.send(*batches[1])
            producer.flush()
        assert subscription.last().entry == 2
        subscription.close()
        assert read(lookup, topic).values == [b"a", b"b"]
