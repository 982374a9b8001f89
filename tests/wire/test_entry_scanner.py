"""Entry infos of a range, and read positions by publish time and index, asked of our broker over its own port."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.bulk.entry_scanner import EntryScanner
from magnetar.client.bulk.lag import lag
from magnetar.client.bulk.ledger_ranges import split_by_ledger
from magnetar.client.bulk.positions import first_position, last_position, position_at_time, position_of_index
from magnetar.client.bulk.range_reader import RangeReader
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import InvalidValueError
from tests.support.batch_writer import BatchWriter
from tests.support.live_broker import LiveBroker, live_broker

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def lookup(broker: LiveBroker) -> Iterator[Lookup]:
    with Lookup(broker.url, timeout=10) as made:
        yield made


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/scan-{next(NUMBERS)}"


def publish(lookup: Lookup, topic: str, sizes: Sequence[int], times: Sequence[int] | None = None) -> None:
    """Publish one entry for each size, with that many messages."""
    with Producer(lookup, topic) as producer:
        number = producer.last_sequence_id + 1
        for size, moment in zip(sizes, times or [1_000] * len(sizes), strict=True):
            for batch in BatchWriter(producer.name).pack(moment, [b"x" * 10] * size, range(number, number + size)):
                producer.send(*batch)
            number += size
        producer.flush()


def test_a_scan_goes_on_where_it_was_and_no_further_than_asked(lookup: Lookup, topic: str) -> None:
    publish(lookup, topic, [3, 5, 1, 4, 2])
    end = last_position(lookup, topic)
    scanner = EntryScanner(lookup, topic)
    few, known = scanner.scan(START, end, messages=4)
    assert known == ReadPosition(few[-1].ledger, few[-1].entry + 1) < end
    # Brokers send a little more than permitted, but not everything.
    assert [one.messages for one in few] in ([3, 5], [3, 5, 1], [3, 5, 1, 4])
    ledger = few[0].ledger
    assert [one.messages for one in scanner.scan(ReadPosition(ledger, 1, 2), end, messages=4).entries][:2] == [5, 1]
    assert [one.messages for one in scanner.scan(ReadPosition(ledger, 1, 2), end).entries] == [5, 1, 4, 2]
    assert [one.entry for one in scanner.scan(ReadPosition(ledger, 4), end).entries] == [4]
    assert scanner.scan(end, end).entries == []
    publish(lookup, topic, [7])
    later = scanner.scan(end, last_position(lookup, topic)).entries
    assert [(one.messages, one.publish_time) for one in later] == [(7, 1_000)]
    # Back to what it has forgotten: it reads that again.
    assert [one.messages for one in scanner.scan(START, end, size=1).entries][:1] == [3]
    scanner.close()


def test_what_never_comes_is_not_waited_for(lookup: Lookup, topic: str) -> None:
    publish(lookup, topic, [2])
    scanner = EntryScanner(lookup, topic)
    beyond = last_position(lookup, topic)._replace(entry=9)
    began = time.monotonic()
    assert [one.messages for one in scanner.scan(START, beyond).entries] == [2]
    assert scanner.scan(beyond, beyond) == ([], beyond)
    assert time.monotonic() - began < 5
    scanner.close()


def test_positions_by_publish_time(lookup: Lookup, topic: str) -> None:
    now = int(time.time() * 1000)
    times = [now - 3_600_000, now - 3_600_000, now - 60_000, now - 59_999, now - 10]
    publish(lookup, topic, [1, 2, 3, 1, 1], times)
    ledger = last_position(lookup, topic).ledger
    for moment, entry in [
        (0, 0),
        (times[0], 0),
        (times[0] + 1, 2),
        (times[2], 2),
        (times[2] + 1, 3),
        (times[4], 4),
        (now + 60_000, 5),
    ]:
        assert position_at_time(lookup, topic, moment, now) == ReadPosition(ledger, entry), moment
    publish(lookup, f"{topic}-empty", [])
    assert position_at_time(lookup, f"{topic}-empty", 5, now) == START


def test_an_index_that_the_broker_does_not_show_is_an_error(lookup: Lookup, topic: str) -> None:
    publish(lookup, topic, [1])
    with pytest.raises(InvalidValueError, match="brokerEntryMetadataInterceptors"):
        position_of_index(lookup, topic, 0)


def test_an_index_that_the_broker_shows_is_found_and_measured_by(tmp_path: Path, topic: str) -> None:
    """From entries in blocks and alone, and after a restart, when they come from the disk."""
    with live_broker(
        tmp_path, exposingBrokerEntryMetadataToClientEnabled=True,
        brokerEntryMetadataInterceptors="org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
    ) as broker:  # fmt: skip
        with Lookup(broker.url, timeout=10) as lookup, CheckpointSubscription(lookup, topic, "keep") as subscription:
            subscription.hold(START)
            publish(lookup, topic, [3, 1, 5, 2])
        for life in range(2):
            if life:
                broker.end()
                broker.start()
            with Lookup(broker.url, timeout=10) as lookup:
                start, end = first_position(lookup, topic), last_position(lookup, topic)
                places = [position_of_index(lookup, topic, index) for index in (0, 2, 3, 5, 10, 11)]
                assert [(one.entry, one.batch) for one in places[:5]] == [(0, 0), (0, 2), (1, 0), (2, 1), (3, 1)]
                assert places[5] == end
                assert [lag(lookup, topic, one, end).messages for one in places[:5]] == [11, 9, 8, 6, 1]
                read = [number for chunk in RangeReader(lookup, topic, start, end) for _, number, _ in chunk]
                assert read == [0, 1, 2, 3]


def test_a_range_is_cut_at_ledgers(tmp_path_factory: pytest.TempPathFactory, topic: str) -> None:
    """Each start of the broker begins a ledger; a subscription keeps the old ones."""
    with live_broker(tmp_path_factory.mktemp("ledgers")) as broker:
        for life in range(3):
            with (
                Lookup(broker.url, timeout=10) as lookup,
                CheckpointSubscription(lookup, topic, "keep") as subscription,
            ):
                subscription.hold(START)
                publish(lookup, topic, [1] * (life + 3))
            if life < 2:
                broker.end()
                broker.start()
        with Lookup(broker.url, timeout=10) as lookup:
            start, end = first_position(lookup, topic), last_position(lookup, topic)
            parts = split_by_ledger(lookup, topic, start, end)
            assert [stop.entry - first.entry for first, stop in parts] == [3, 4, 5]
            assert [first.ledger == stop.ledger for first, stop in parts] == [True] * 3
            inside = split_by_ledger(lookup, topic, ReadPosition(start.ledger, 2), parts[1][1])
            assert inside == [(ReadPosition(start.ledger, 2), parts[0][1]), parts[1]]
            assert split_by_ledger(lookup, topic, end, end) == []


def test_a_query_begins_where_a_ledger_begins(tmp_path_factory: pytest.TempPathFactory, topic: str) -> None:
    """An acknowledgement names an entry, and before the first one of a ledger there is none in it: the subscription
    stayed at the very start, and the query with it."""
    with live_broker(tmp_path_factory.mktemp("ledgers")) as broker:
        for life in range(2):
            with (
                Lookup(broker.url, timeout=10) as lookup,
                CheckpointSubscription(lookup, topic, "keep") as subscription,
            ):
                subscription.hold(START)
                publish(lookup, topic, [1] * 3)
            if not life:
                broker.end()
                broker.start()
        with Lookup(broker.url, timeout=10) as lookup:
            first, end = first_position(lookup, topic), last_position(lookup, topic)
            start = ReadPosition(end.ledger, 0)
            assert first.ledger < start.ledger
            with CheckpointSubscription(lookup, topic, "query") as query:
                held = query.hold(start)
                assert held == query.hold(start) == ReadPosition(first.ledger, 3)
            with CheckpointSubscription(lookup, topic, "other") as query:
                assert query.hold(first) == first
