"""The sums of buckets are those that a dictionary of sums has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.jobs.verification import digest_table
from magnetar.jobs.verification.digest_table import DigestRow, DigestTable

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
PORTIONS = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.integers(0, 9), INT64), INT64), max_size=30), max_size=4
)


def signed(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


@pytest.fixture(scope="module", autouse=True)
def _little_room() -> Iterator[None]:
    """So that tables have to grow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest_table, "_FIRST_ROWS", 2)
        yield


@settings(deadline=None)
@given(PORTIONS)
def test_sums_are_those_of_a_dictionary(portions: list[list[tuple[str, int, int]]]) -> None:
    found = DigestTable()
    want: dict[tuple[str, int], tuple[int, int, int]] = {}
    for portion in portions:
        owners = pa.array([one[0] for one in portion], pa.string()).dictionary_encode()
        numbers, contents = (np.array([one[at] for one in portion], np.int64) for at in (1, 2))
        found.add(owners, numbers, contents)
        for owner, number, content in portion:
            count, total, mixed = want.get((owner, number), (0, 0, 0))
            want[owner, number] = count + 1, signed(total + content), mixed ^ content
    assert list(found) == [DigestRow(*key, *sums) for key, sums in want.items()]
