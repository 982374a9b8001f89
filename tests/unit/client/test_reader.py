"""Reading a range: every entry once and in order, to a place and not to an id (PIPELINES 8.20)."""

from __future__ import annotations

import itertools

import pytest

from magnetar.client import reader
from magnetar.client.errors import ClientTimeoutError, DataLossError
from magnetar.client.lookup import Lookup
from magnetar.client.place import START, Place
from magnetar.client.reader import RangeReader
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.unit.client.scripted_broker import TOPIC, Link, Script, lookups, scripted_broker


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_SILENCE", 0.1)
    monkeypatch.setattr(reader, "_PAUSE", 0.01)


def entry(number: int) -> bytes:
    return build_entry(EntryMetadata("p", number, 1), b"%d" % number)


def serving(*numbers: int, start: c.MessageIdData, last: int | None = None, ledger: int = 5) -> Script:
    """A consumer placed at ``start`` that gets these entries; then perhaps the question for the last one."""

    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.Subscribe)
        assert (asked.durable, asked.start_message_id, asked.force_topic_creation) == (False, start, False)
        link.send(c.Success(asked.request_id))
        assert link.expect(c.Flow).permits > 1_000_000
        link.deliver(asked.consumer_id, *((ledger, number, entry(number)) for number in numbers))
        if last is not None:
            question = link.expect(c.GetLastMessageId)
            link.send(c.GetLastMessageIdResponse(c.MessageIdData(ledger, last), question.request_id))
        # A reader that leaves here reads until it sees that.

    return script


def read(url: str, start: Place, end: Place, *, strict: bool = True, poll_timeout: float = 120.0) -> list[int]:
    with Lookup(url, timeout=5) as lookup:
        found = RangeReader(lookup, TOPIC, start, end, fail_on_data_loss=strict, poll_timeout=poll_timeout)
        return [int(one.data[-1:]) for chunk in found for one in chunk]


def at(number: int, batch: int = 0) -> c.MessageIdData:
    return c.MessageIdData(5, number, batch_index=batch)


EARLIEST = c.MessageIdData(-1, -1)


def test_stops_at_the_entry_before_the_end() -> None:
    with scripted_broker(lookups(), serving(0, 1, 2, start=EARLIEST)) as url:
        assert read(url, START, Place(5, 2)) == [0, 1]


def test_stops_at_the_first_entry_behind_an_end_that_is_not_there() -> None:
    with scripted_broker(lookups(), serving(0, 1, 7, start=EARLIEST)) as url:
        assert read(url, START, Place(5, 5)) == [0, 1]


def test_the_entry_of_an_end_inside_a_batch_is_given() -> None:
    with scripted_broker(lookups(), serving(3, 4, 5, start=at(3, 2))) as url:
        assert read(url, Place(5, 3, 2), Place(5, 4, 1)) == [3, 4]


def test_an_empty_range_asks_nobody() -> None:
    with Lookup("pulsar://127.0.0.1:1") as lookup:
        assert list(RangeReader(lookup, TOPIC, Place(1, 1), Place(1, 1))) == []


def test_goes_on_behind_what_it_has_when_the_connection_breaks() -> None:
    with scripted_broker(lookups(2), serving(0, 1, start=EARLIEST), serving(1, 2, 3, start=at(2))) as url:
        assert read(url, START, Place(5, 4)) == [0, 1, 2, 3]


def test_what_is_gone_is_an_error_or_the_end() -> None:
    scripts = lookups(), serving(0, 1, start=EARLIEST, last=1)
    with (
        scripted_broker(*scripts) as url,
        pytest.raises(DataLossError, match=r"between 5:2:0 and 5:9:0.*failOnDataLoss"),
    ):
        read(url, START, Place(5, 9))
    with scripted_broker(*scripts) as url:
        assert read(url, START, Place(5, 9), strict=False) == [0, 1]


def test_a_damaged_entry_is_named() -> None:
    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.Subscribe)
        link.send(c.Success(asked.request_id))
        link.expect(c.Flow)
        link.deliver(asked.consumer_id, (5, 3, entry(3)[:-1] + b"x"))

    with scripted_broker(lookups(), script) as url, pytest.raises(DataLossError, match=r"entry 5:3 .*checksum"):
        read(url, START, Place(5, 9))


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(0.0, 0.1)
    monkeypatch.setattr(reader, "steady_seconds", lambda: next(seconds))
    scripts = lookups(3), *[serving(start=EARLIEST, last=8)] * 3
    patience = pytest.raises(ClientTimeoutError, match="no entry of -1:0:0 to 5:9:0")
    with scripted_broker(*scripts) as url, patience:
        read(url, START, Place(5, 9), poll_timeout=0.25)
