"""Limits per micro-batch against a naive model: message by message, in order of publish time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.bulk.entry_info import EntryInfo
from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.options.limits import ReadLimits
from magnetar.spark.source.planning.admission import admit, waiting

logs = st.dictionaries(
    st.sampled_from("abc"),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 60), st.integers(0, 9)), max_size=8),
    min_size=1,
)


def entries(log: list[tuple[int, int, int]]) -> list[EntryInfo]:
    """Three entries to a ledger."""
    return [EntryInfo(index // 3, index % 3, *shape) for index, shape in enumerate(log)]


def ends(tables: dict[str, list[EntryInfo]]) -> dict[str, ReadPosition]:
    # After each log stands a marker that no reader gets.
    return {topic: ReadPosition(table[-1].ledger, table[-1].entry + 2) for topic, table in tables.items() if table}


def between(table: list[EntryInfo], start: ReadPosition, end: ReadPosition) -> list[tuple[int, int, int]]:
    """Naively: the ids of all messages in a range."""
    every = [(one.ledger, one.entry, index) for one in table for index in range(one.messages)]
    return [at for at in every if start <= ReadPosition(*at) < end]


@given(logs, st.integers(0, 12), st.integers(0, 90))
def test_batches_follow_each_other_without_gap_or_repetition(
    given_logs: dict[str, list[tuple[int, int, int]]], messages: int, size: int
) -> None:
    tables = {topic: entries(log) for topic, log in given_logs.items()}
    end = ends(tables)
    position = dict.fromkeys(end, START)
    seen: dict[str, list[tuple[int, int, int]]] = {topic: [] for topic in end}
    for _ in range(1_000):
        following = admit(tables, position, end, ReadLimits(messages, size))
        if following == position:
            break
        batch = {topic: between(tables[topic], position[topic], following[topic]) for topic in end}
        count = sum(map(len, batch.values()))
        parts = {topic: waiting(tables[topic], position[topic], following[topic]) for topic in end}
        assert {topic: part[0] for topic, part in parts.items()} == {topic: len(ids) for topic, ids in batch.items()}
        if messages:
            assert count <= messages
        if size:
            assert count <= 1 or sum(part[1] for part in parts.values()) <= size
        if any(between(tables[topic], position[topic], end[topic]) for topic in end):
            assert count >= 1
        for topic in end:
            seen[topic] += batch[topic]
        position = following
    assert position == end
    assert seen == {topic: between(tables[topic], START, end[topic]) for topic in end}


@given(logs, st.integers(1, 12))
def test_partitions_advance_to_one_publish_time(
    given_logs: dict[str, list[tuple[int, int, int]]], messages: int
) -> None:
    """No message is left that was published before one that is admitted, but in the entry where the limit fell."""
    tables = {topic: entries(sorted(log, key=lambda shape: shape[2])) for topic, log in given_logs.items()}
    end = ends(tables)
    reached = admit(tables, dict.fromkeys(end, START), end, ReadLimits(messages))
    admitted = [
        one.publish_time
        for topic in end
        for one in tables[topic]
        if between([one], START, reached[topic]) == between([one], START, end[topic])
    ]
    left = [
        one.publish_time
        for topic in end
        for one in tables[topic]
        if between([one], START, reached[topic]) != between([one], START, end[topic])
    ]
    assert max(admitted, default=0) <= min(left, default=9)


def test_a_full_admission_uses_its_limit_up() -> None:
    tables = {"a": [EntryInfo(1, index, 1_000, 100_000, index) for index in range(10)]}
    start, end = {"a": ReadPosition(1, 0)}, {"a": ReadPosition(1, 10)}
    assert admit(tables, start, end, ReadLimits(messages=2_500)) == {"a": ReadPosition(1, 2, 500)}
    assert admit(tables, {"a": ReadPosition(1, 2, 500)}, end, ReadLimits(messages=500)) == {"a": ReadPosition(1, 3)}
    assert admit(tables, start, end, ReadLimits(size=250_000)) == {"a": ReadPosition(1, 2, 500)}
    assert admit(tables, start, end, ReadLimits(size=1)) == {"a": ReadPosition(1, 0, 1)}
    assert admit(tables, start, {"a": ReadPosition(1, 2, 7)}, ReadLimits()) == {"a": ReadPosition(1, 2, 7)}
    # A partition that the start does not know yet begins at its start.
    later = {**tables, "b": [EntryInfo(5, 0, 3, 9, -1)]}
    assert admit(later, start, {**end, "b": ReadPosition(5, 1)}, ReadLimits(5)) == {
        "a": ReadPosition(1, 0, 2),
        "b": ReadPosition(5, 1),
    }
