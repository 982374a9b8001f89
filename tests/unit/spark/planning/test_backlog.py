"""How much a stream without limits takes: arithmetic over ledgers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.source.planning.backlog import FEW, BacklogEstimate, is_small, position_after_share


def test_a_query_that_keeps_up_asks_nothing() -> None:
    at = ReadPosition(5, 10)
    assert is_small({"a": at}, {"a": ReadPosition(5, 10 + FEW)})
    assert not is_small({"a": at}, {"a": ReadPosition(5, 11 + FEW)})
    assert not is_small({"a": at, "b": at}, {"a": ReadPosition(5, 10 + FEW), "b": ReadPosition(5, 11)})
    assert not is_small({"a": at}, {"a": ReadPosition(6, 0)})
    assert not is_small({}, {"a": at})
    assert is_small({"a": at}, {"a": at})
    assert is_small({"a": START}, {"a": START})


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 60), st.integers(1, 3), st.booleans())
def test_a_share_of_bytes_ends_after_that_many_entries(counts: list[int], share: int, size: int, more: bool) -> None:
    parts = [(ReadPosition(ledger, 3), ReadPosition(ledger, 3 + count)) for ledger, count in enumerate(counts)]
    rest = (ReadPosition(len(counts), 0), ReadPosition(99, 1))
    estimate = BacklogEstimate([*parts, rest] if more else parts, size)
    assert estimate.size == (float("inf") if more else sum(counts) * size)
    position = position_after_share(estimate, share)
    room = max(share // size, 1)
    every = [(ledger, 3 + number) for ledger, count in enumerate(counts) for number in range(count)]
    if room < len(every):
        assert position is not None and position[:2] == every[room]
    else:
        assert position == (rest[0] if more else None)


def test_a_share_ends_nowhere_where_counts_are_not_known() -> None:
    assert position_after_share(BacklogEstimate([(START, ReadPosition(3, 3))], 10), 1) is None
