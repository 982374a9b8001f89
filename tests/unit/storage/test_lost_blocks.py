"""What segments and their blocks say of those that are gone, by their numbers alone."""

from __future__ import annotations

import pytest

from magnetar.storage.lost_blocks import LOST_SEQUENCES, blocks_missing, gap_after, newest_lost


@pytest.mark.parametrize(
    ("covered", "segments", "missing"),
    [
        (0, [], 0), (0, [1], 0), (0, [2], 1), (0, [1, 3], 2), (2, [1, 2, 3], 0), (2, [3, 4, 6], 5), (2, [4], 3),
        (2, [1], 0), (7, [1, 3, 5], 0), (0, [1, 2, 4, 6], 3),
    ],
)  # fmt: skip
def test_the_first_segment_is_named_that_is_missing_of_those_after_a_checkpoint(
    covered: int, segments: list[int], missing: int
) -> None:
    text = gap_after(covered, segments)
    assert text is None if not missing else text is not None
    if text is not None:
        after = min(number for number in segments if number > missing)
        assert text.startswith(f"segment-{missing:016x} is missing although segment-{after:016x} exists")


@pytest.mark.parametrize(
    ("noted", "newest", "hollow", "said"),
    [
        (None, 3, True, ""), (2, 3, True, ""), (2, 3, False, ""), (3, 3, False, ""),
        (3, 3, True, "has no readable block, not even its first"), (4, 3, False, "is missing: what was written"),
        (4, 3, True, "is missing: what was written"), (1, 0, False, "is missing: what was written"),
    ],
)  # fmt: skip
def test_a_segment_that_was_begun_is_there_and_has_a_block(
    noted: int | None, newest: int, hollow: bool, said: str
) -> None:
    text = newest_lost(noted, newest, hollow=hollow)
    assert text is None if not said else text is not None
    if text is not None:
        assert text.startswith(f"segment-{noted:016x}, the newest, {said}")


@pytest.mark.parametrize(
    ("expected", "found", "missing"),
    [
        (5, 5, 0), (5, 4, 0), (5, 6, 1), (5, 9, 4), (0, 1, 1), (5, 5 + LOST_SEQUENCES, 0),
        (5, 6 + LOST_SEQUENCES, 1), (5, 5 + 2 * LOST_SEQUENCES, 0), (5, 4 + LOST_SEQUENCES, LOST_SEQUENCES - 1),
    ],
)  # fmt: skip
def test_blocks_are_missing_where_numbers_are_but_for_those_that_a_start_has_skipped(
    expected: int, found: int, missing: int
) -> None:
    text = blocks_missing(7, expected, found)
    assert text is None if not missing else text is not None
    if text is not None:
        assert f"{missing} blocks between them, from sequence {expected} on" in text
        assert text.startswith("segment-0000000000000007 ends")


def test_a_start_skips_as_many_numbers_of_blocks_as_a_segment_cannot_have() -> None:
    assert LOST_SEQUENCES == 4_294_967_296
