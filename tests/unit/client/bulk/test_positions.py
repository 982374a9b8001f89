"""Read positions by time at a broker that takes its time: silence is not the end of a topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from magnetar.client.bulk import positions
from magnetar.client.bulk.positions import first_position, position_at_time
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.scripted_broker import TOPIC, Link, Script, lookups, scripted_broker
from tests.support.told_silence import ToldSilence

LAST = c.MessageIdData(3, 9)


@pytest.fixture(autouse=True)
def silence(monkeypatch: pytest.MonkeyPatch) -> ToldSilence:
    return ToldSilence(monkeypatch, positions)


@contextmanager
def asking(*scripts: Script) -> Iterator[Lookup]:
    with scripted_broker(*scripts) as url, Lookup(url, timeout=5.0) as lookup:
        yield lookup


def reads(link: Link) -> int:
    link.greet()
    asked = link.expect(c.CommandSubscribe)
    link.send(c.CommandSuccess(asked.request_id))
    return asked.consumer_id


def tells(link: Link, marked: c.MessageIdData) -> None:
    asked = link.expect(c.CommandGetLastMessageId)
    link.send(c.CommandGetLastMessageIdResponse(LAST, asked.request_id, marked))


def delivers(link: Link, consumer: int, *entries: int) -> None:
    """Entry n was published at second n."""
    link.expect(c.CommandFlow)
    made = [(3, entry, build_entry(EntryMetadata("p", entry, entry * 1000), b"x")) for entry in entries]
    link.deliver(consumer, *made)


def slow(silence: ToldSilence) -> Script:
    def script(link: Link) -> None:
        consumer = reads(link)
        tells(link, c.MessageIdData(3, -1))
        delivers(link, consumer, 0, 1)
        link.expect(c.CommandFlow)
        silence.begin()
        time.sleep(0.05)
        silence.end()
        made = [(3, entry, build_entry(EntryMetadata("p", entry, entry * 1000), b"x")) for entry in (2, 3)]
        link.deliver(consumer, *made)

    return script


def test_silence_of_a_slow_broker_is_not_the_end(silence: ToldSilence) -> None:
    with asking(lookups(), slow(silence)) as lookup:
        assert position_at_time(lookup, TOPIC, 3000, 9000) == ReadPosition(3, 3)


def test_a_search_goes_on_when_the_topic_is_unloaded(silence: ToldSilence) -> None:
    def unloaded(link: Link) -> None:
        consumer = reads(link)
        tells(link, c.MessageIdData(3, -1))
        delivers(link, consumer, 0, 1)
        link.send(c.CommandCloseConsumer(consumer, -1))

    with asking(lookups(), unloaded, lookups(), slow(silence)) as lookup:
        assert position_at_time(lookup, TOPIC, 3000, 9000) == ReadPosition(3, 3)


def test_a_time_after_every_message_is_the_end_of_the_topic(silence: ToldSilence) -> None:
    """The broker has placed the reader after everything."""

    def placed(link: Link) -> None:
        reads(link)
        tells(link, LAST)
        link.expect(c.CommandFlow)
        silence.begin()
        tells(link, LAST)

    with asking(lookups(), placed) as lookup:
        assert position_at_time(lookup, TOPIC, 99_000, 9000) == ReadPosition(3, 10)


def test_the_first_position_is_awaited_from_a_slow_broker(silence: ToldSilence) -> None:
    def first(link: Link) -> None:
        consumer = reads(link)
        tells(link, c.MessageIdData(3, -1))
        link.expect(c.CommandFlow)
        silence.begin()
        tells(link, c.MessageIdData(3, -1))
        time.sleep(0.05)
        link.deliver(consumer, (3, 4, build_entry(EntryMetadata("p", 4, 4000), b"x")))

    with asking(lookups(), first) as lookup:
        assert first_position(lookup, TOPIC) == ReadPosition(3, 4)


def test_there_is_no_first_position_where_all_was_trimmed(silence: ToldSilence) -> None:
    def trimmed(link: Link) -> None:
        reads(link)
        tells(link, c.MessageIdData(4, -1))
        link.expect(c.CommandFlow)
        silence.begin()
        tells(link, c.MessageIdData(4, -1))

    with asking(lookups(), trimmed) as lookup:
        assert first_position(lookup, TOPIC) == START


def test_a_search_by_time_ends_although_the_first_entry_is_gone_meanwhile() -> None:
    """The entry that was the first one is trimmed, or comes no more: it was looked for again and again."""

    def begins_at(entry: int) -> Script:
        def script(link: Link) -> None:
            consumer = reads(link)
            tells(link, c.MessageIdData(3, -1))
            delivers(link, consumer, entry)

        return script

    with asking(lookups(3), begins_at(5), begins_at(4), begins_at(5)) as lookup:
        assert position_at_time(lookup, TOPIC, 3000, 9000) == ReadPosition(3, 5)
