"""What follows a range is read before a message in chunks is given up."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from magnetar.client.bulk.range_reader import Entry
from magnetar.client.read_position import ReadPosition
from magnetar.protocol.entries import EntryMetadata, build_entry, payload_of
from magnetar.runtime.clock import SystemClock
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.reading import range_entries

TOPIC = "persistent://public/default/t"
DAY = 86_400_000
OPTIONS = dataclasses.replace(
    source_options({"service.url": "pulsar://h:1", "topic": "t"}), chunk_timeout=0.01, poll_timeout=1.0
)


def chunk(number: int, published: int) -> bytes:
    return build_entry(
        EntryMetadata("p", 7, published, uuid="u", num_chunks_from_msg=3, chunk_id=number, total_chunk_msg_size=3),
        b"abc"[number : number + 1],
    )


def rest(monkeypatch: pytest.MonkeyPatch, published: int, answers: list[list[Entry]]) -> list[bytes]:
    """Values of a range that has the first of three chunks."""

    def tail_entries(*_: Any) -> Iterator[list[Entry]]:
        yield from answers
        while True:
            yield []

    monkeypatch.setattr(range_entries, "tail_entries", tail_entries)
    monkeypatch.setattr(range_entries, "last_position", lambda *_: ReadPosition(1, 3))
    opener = range_entries.opener_of(OPTIONS, TOPIC)
    assert opener.open(1, 0, chunk(0, published)) is None
    whole = range_entries._rest(OPTIONS, None, Range(TOPIC, ReadPosition(1, 0), ReadPosition(1, 1)), opener)  # type: ignore[arg-type]  # no broker is asked
    return [payload_of(one.data) for some in whole for one in some]


def test_an_old_message_in_chunks_is_whole_at_every_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    published = SystemClock().now_ms() - DAY
    following = [Entry(1, number, chunk(number, published)) for number in (1, 2)]
    assert rest(monkeypatch, published, [following]) == [b"abc"]


def test_silence_before_the_end_of_the_topic_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    published = SystemClock().now_ms()
    following = [[Entry(1, number, chunk(number, published))] for number in (1, 2)]
    silence: list[list[Entry]] = [[]] * 5
    ticks = iter(range(1000))
    monkeypatch.setattr(range_entries, "steady_seconds", lambda: next(ticks) * 0.5)
    assert rest(monkeypatch, published, [*silence, following[0], *silence, following[1]]) == [b"abc"]


def test_what_is_never_finished_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SystemClock().now_ms()
    ticks = iter(range(1000))
    monkeypatch.setattr(range_entries, "steady_seconds", lambda: next(ticks) * 0.5)
    assert rest(monkeypatch, now, []) == []
    other = build_entry(EntryMetadata("q", 8, now), b"x")
    assert rest(monkeypatch, now - DAY, [[Entry(1, 1, other), Entry(1, 2, other)]]) == []
