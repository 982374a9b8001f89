"""A range is read with every entry once and in order, and ends at a position, which need not be that of an entry."""

from __future__ import annotations

import itertools

import pytest

from magnetar.client.bulk import range_reader
from magnetar.client.bulk.data_loss import DataGap, DataLossError, Hole, gaps
from magnetar.client.bulk.range_reader import RangeReader
from magnetar.client.errors import ClientTimeoutError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.scripted_broker import TOPIC, Link, Script, lookups, scripted_broker
from tests.support.told_silence import ToldSilence


@pytest.fixture(autouse=True)
def silence(monkeypatch: pytest.MonkeyPatch) -> ToldSilence:
    monkeypatch.setattr(range_reader, "_PAUSE", 0.01)
    return ToldSilence(monkeypatch, range_reader)


def entry(number: int) -> bytes:
    return build_entry(EntryMetadata("p", number, 1), b"%d" % number)


def serving(*numbers: int, start: c.MessageIdData, last: tuple[ToldSilence, int] | None = None) -> Script:
    """A consumer placed at ``start`` that gets these entries; then perhaps silence, and its question for the last."""

    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandSubscribe)
        assert (asked.durable, asked.start_message_id, asked.force_topic_creation) == (False, start, False)
        link.send(c.CommandSuccess(asked.request_id))
        assert link.expect(c.CommandFlow).permits > 1_000_000
        link.deliver(asked.consumer_id, *((5, number, entry(number)) for number in numbers))
        if last is not None:
            silence, answer = last
            silence.begin()
            question = link.expect(c.CommandGetLastMessageId)
            silence.end()
            link.send(c.CommandGetLastMessageIdResponse(c.MessageIdData(5, answer), question.request_id))
        # A reader that leaves here reads until it sees that.

    return script


def standing(start: c.MessageIdData, mark: tuple[int, int]) -> Script:
    """A consumer that asks for ``start`` and gets its mark-delete position."""

    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandSubscribe)
        assert (asked.durable, asked.start_message_id) == (False, start)
        link.send(c.CommandSuccess(asked.request_id))
        question = link.expect(c.CommandGetLastMessageId)
        answer = c.CommandGetLastMessageIdResponse(c.MessageIdData(9, 9), question.request_id, c.MessageIdData(*mark))
        link.send(answer)

    return script


def read(
    url: str, start: ReadPosition, end: ReadPosition, *, strict: bool = True, poll_timeout: float = 120.0,
    reported: list[DataGap] | None = None,
) -> list[int]:  # fmt: skip
    with Lookup(url, timeout=5) as lookup:
        found = RangeReader(
            lookup, TOPIC, start, end, fail_on_data_loss=strict, poll_timeout=poll_timeout,
            on_gap=None if reported is None else reported.append,
        )  # fmt: skip
        return [int(one.data[-1:]) for chunk in found for one in chunk]


def at(number: int, batch: int = 0) -> c.MessageIdData:
    return c.MessageIdData(5, number, batch_index=batch)


EARLIEST = c.MessageIdData(-1, -1)


def test_stops_at_the_entry_before_the_end() -> None:
    with scripted_broker(lookups(), serving(0, 1, 2, start=EARLIEST)) as url:
        assert read(url, START, ReadPosition(5, 2)) == [0, 1]


def test_stops_at_the_first_entry_after_an_end_that_is_not_there() -> None:
    there = standing(at(2, 0), (5, 1))
    with scripted_broker(lookups(2), serving(0, 1, 7, start=EARLIEST), there) as url:
        assert read(url, START, ReadPosition(5, 5)) == [0, 1]


def test_the_entry_of_an_end_inside_a_batch_is_given() -> None:
    with scripted_broker(lookups(), serving(3, 4, 5, start=at(3, 2))) as url:
        assert read(url, ReadPosition(5, 3, 2), ReadPosition(5, 4, 1)) == [3, 4]


def test_an_empty_range_asks_no_broker() -> None:
    with Lookup("pulsar://127.0.0.1:1") as lookup:
        assert list(RangeReader(lookup, TOPIC, ReadPosition(1, 1), ReadPosition(1, 1))) == []


def test_goes_on_after_what_it_has_when_the_connection_breaks() -> None:
    with scripted_broker(lookups(2), serving(0, 1, start=EARLIEST), serving(1, 2, 3, start=at(2))) as url:
        assert read(url, START, ReadPosition(5, 4)) == [0, 1, 2, 3]


def test_what_is_gone_is_an_error_or_the_end(silence: ToldSilence) -> None:
    scripts = lookups(), serving(0, 1, start=EARLIEST, last=(silence, 1))
    with (
        scripted_broker(*scripts) as url,
        pytest.raises(DataLossError, match=r"between 5:2:0 and 5:9:0.*failOnDataLoss"),
    ):
        read(url, START, ReadPosition(5, 9))
    with scripted_broker(*scripts) as url:
        assert read(url, START, ReadPosition(5, 9), strict=False) == [0, 1]


def test_a_damaged_entry_is_named() -> None:
    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandSubscribe)
        link.send(c.CommandSuccess(asked.request_id))
        link.expect(c.CommandFlow)
        link.deliver(asked.consumer_id, (5, 3, entry(3)[:-1] + b"x"))

    with scripted_broker(lookups(), script) as url, pytest.raises(DataLossError, match=r"entry 5:3 .*checksum"):
        read(url, START, ReadPosition(5, 9))


def test_a_range_that_brings_nothing_times_out(monkeypatch: pytest.MonkeyPatch, silence: ToldSilence) -> None:
    seconds = itertools.count(0.0, 0.1)
    monkeypatch.setattr(range_reader, "steady_seconds", lambda: next(seconds))
    scripts = lookups(3), *[serving(start=EARLIEST, last=(silence, 8))] * 3
    patience = pytest.raises(ClientTimeoutError, match="no entry of -1:0:0 to 5:9:0")
    with scripted_broker(*scripts) as url, patience:
        read(url, START, ReadPosition(5, 9), poll_timeout=0.25)


def test_a_trimmed_beginning_is_an_error_or_reported() -> None:
    """The broker goes on with what is left; only a second reader shows that the rest is gone (rule 4.3.2)."""
    scripts = lookups(2), serving(4, 5, start=at(2, 0)), standing(at(2, 0), (5, 3))
    gap = DataGap(TOPIC, ReadPosition(5, 2), ReadPosition(5, 4), certain=True)
    with scripted_broker(*scripts) as url, pytest.raises(DataLossError, match="between 5:2:0 and 5:4:0 is") as error:
        read(url, ReadPosition(5, 2), ReadPosition(5, 6))
    assert error.value.gap == gap
    reported: list[DataGap] = []
    with scripted_broker(*scripts) as url:
        assert read(url, ReadPosition(5, 2), ReadPosition(5, 6), strict=False, reported=reported) == [4, 5]
    assert reported == [gap]


def test_entries_that_no_reader_gets_are_no_gap() -> None:
    reported: list[DataGap] = []
    scripts = lookups(2), serving(0, 1, 3, 5, start=EARLIEST), standing(at(2, 0), (5, 1))
    with scripted_broker(*scripts) as url:
        assert read(url, START, ReadPosition(5, 6), reported=reported) == [0, 1, 3, 5]
    assert reported == []


def test_a_range_that_is_gone_as_a_whole() -> None:
    scripts = lookups(2), serving(7, start=at(2, 0)), standing(at(2, 0), (5, 6))
    with scripted_broker(*scripts) as url, pytest.raises(DataLossError, match="between 5:2:0 and 5:4:0 is"):
        read(url, ReadPosition(5, 2), ReadPosition(5, 4))


@pytest.mark.parametrize(
    ("hole", "placed_at", "end", "certain"),
    [
        (((5, 2), (5, 4)), (5, 4), (5, 9), True),  # inside a ledger
        (((5, 2), (5, 4)), (5, 9), (6, 1), True),
        (((5, 2), (7, 0)), (7, 0), (7, 1), False),  # 5:1 may have been the last of its ledger
        (((5, 2), (7, 3)), (7, 3), (7, 9), True),  # 7:0 to 7:2 were there
        (((5, 2), (5, 4)), (7, 0), (5, 4), True),  # the range ends after 5:3, which existed
        (((5, 2), (5, 4)), (5, 2), (5, 9), None),
        (((5, 2), (5, 4)), (-1, 0), (5, 9), None),
        (((5, 2), (7, 0)), (5, 2), (7, 9), None),
    ],
)
def test_a_gap_is_certain_only_where_entries_must_have_been(
    hole: tuple[tuple[int, int], tuple[int, int]],
    placed_at: tuple[int, int],
    end: tuple[int, int],
    certain: bool | None,
) -> None:
    found = gaps(
        "t", [Hole(ReadPosition(*hole[0]), ReadPosition(*hole[1]))], ReadPosition(*placed_at), ReadPosition(*end)
    )
    assert [gap.certain for gap in found] == ([] if certain is None else [certain])
