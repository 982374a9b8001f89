"""SpanTable against a dictionary of where each ordinal lies: placed, moved again and again, let go (Hypothesis)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from magnetar.storage.ledgers.span_table import ExtentPlace, SpanTable
from magnetar.storage.log.segment import ExtentOffsets, Span
from magnetar.storage.space.occupancy import Occupancy

ENTRY = 10


class Home:
    def __init__(self) -> None:
        self.occupancy = Occupancy()
        self.left: dict[int, int] = {}

    def span_added(self, span: Span) -> None:
        self.occupancy.added(span)

    def span_dropped(self, span: Span) -> None:
        self.occupancy.dropped(span)

    def span_shrunk(self, span: Span, size: int) -> None:
        self.occupancy.shrunk(span, size)

    def span_left(self, source: int, target: int, size: int) -> None:
        self.left[source] = target


@dataclass
class Place:
    segment: int
    offset: int
    first: int
    """The ordinal of the extent's first entry."""


class SpanMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Home()
        self.table = SpanTable(self.home, 7)
        self.model: dict[int, Place] = {}
        self.ledger_of: dict[int, int] = {}
        self.end = self.first = self.moved = 0
        self.ledger = self.segment = 1
        self.offset = 48

    @rule(entries=st.integers(1, 6))
    def place(self, entries: int) -> None:
        self.table.place(self.segment, self.ledger, self.end, entries, self.offset, entries * ENTRY)
        for ordinal in range(self.end, self.end + entries):
            self.model[ordinal] = Place(self.segment, self.offset, self.end)
            self.ledger_of[ordinal] = self.ledger
        self.end += entries
        self.offset += entries * ENTRY

    @rule()
    def next_ledger(self) -> None:
        self.ledger += 1

    @rule(asked=st.booleans())
    def next_segment(self, asked: bool) -> None:
        self.segment += 1
        self.offset = 48
        if asked:  # from now on it is counted as things change
            self.home.occupancy.sizes = dict.fromkeys(range(1, self.segment), 1 << 20)
            self.home.occupancy.uses()

    @rule(share=st.floats(0, 0.999), entries=st.integers(1, 8), gone=st.booleans())
    def move(self, share: float, entries: int, gone: bool) -> None:
        """Move parts of a ledger in older segments, as they come: spans, fronts, middles; or what is gone already."""
        self._move(int(share * self.end), entries, gone=gone)

    @rule(counts=st.lists(st.integers(1, 4), min_size=1, max_size=4))
    def move_on(self, counts: list[int]) -> None:
        """Move what follows the last that was moved, one extent after the other, as a cleaner does."""
        for entries in counts:
            self._move(self.moved, entries, gone=False)

    def _move(self, first: int, entries: int, *, gone: bool) -> None:
        ledger = self.ledger_of.get(first, 1)
        known = {
            o for o in range(first, first + entries)
            if self.ledger_of.get(o) == ledger and (o not in self.model or self.model[o].segment < self.segment)
        }  # fmt: skip
        end = first
        while end in known:
            end += 1
        if end == first or (not gone and first not in self.model):
            return
        self.table.move(ExtentPlace(self.segment, ledger, first, end, self.offset, (end - first) * ENTRY), self.first)
        for ordinal in range(first, end):
            if ordinal in self.model:
                self.model[ordinal] = Place(self.segment, self.offset, first)
        self.offset += (end - first) * ENTRY
        self.moved = end

    @rule(share=st.floats(0, 1), all_of_it=st.booleans())
    def trim(self, share: float, all_of_it: bool) -> None:
        self.first = max(self.first, int(share * self.end) if not all_of_it else self.end)
        self.table.drop_before(self.first)
        self.model = {o: place for o, place in self.model.items() if o >= self.first}

    @rule(share=st.floats(0, 0.999))
    def drop_ledger(self, share: float) -> None:
        ledger = self.ledger_of.get(int(share * self.end))
        if ledger is not None and ledger != self.ledger:
            self.table.drop_ledger(ledger)
            self.model = {o: place for o, place in self.model.items() if self.ledger_of[o] != ledger}

    @invariant()
    def every_ordinal_is_where_the_model_says(self) -> None:
        for ordinal in range(self.first, self.end):
            span = self.table.holding(ordinal)
            place = self.model.get(ordinal)
            if place is None:
                assert span is None, ordinal
                continue
            assert span is not None, ordinal
            assert span.places is not None
            assert (span.segment, span.ledger) == (place.segment, self.ledger_of[ordinal])
            i = span.places.find(ordinal)
            assert (span.places.firsts[i], span.places.offsets[i]) == (place.first, place.offset)
            inside = [o for f, o in zip(span.places.firsts, span.places.offsets, strict=True) if span.first <= f]
            assert inside == sorted(inside), "one read takes neighbours in the order of the file"

    @invariant()
    def spans_are_in_order_and_known_to_the_store(self) -> None:
        spans = list(self.table)
        for before, after in pairwise(spans):
            assert before.first < before.end <= after.first < after.end
        by_segment = {span.segment for span in spans}
        for number in range(1, self.segment + 1):
            found = self.home.occupancy.spans(number)
            assert set(found) == {span for span in spans if span.segment == number}
            assert (number in self.home.occupancy) == (number in by_segment)
            assert self.home.occupancy.living(number) == sum(span.living for span in found)
            assert all(0 <= span.living <= span.bytes for span in found)


@pytest.mark.parametrize("hidden", [0, 2])
def test_extents_that_are_moved_one_after_the_other_lie_in_one_span(hidden: int) -> None:
    """A log has as few spans as its places allow: each costs memory, and a place in checkpoints."""
    _, spans = table()
    for first in range(0, 12, 4):
        spans.place(1, 5, first, 4, 48 + first * ENTRY, 4 * ENTRY)
    spans.drop_before(hidden)
    for number, first in enumerate(range(0, 12, 4), 1):
        spans.move(ExtentPlace(2, 5, first, first + 4, 500 + first * ENTRY, 4 * ENTRY), 0)
        moved, *rest = spans
        assert (moved.segment, moved.first, moved.end, moved.bytes) == (2, 0, first + 4, number * 4 * ENTRY)
        assert moved.places is not None
        assert list(moved.places.firsts) == list(range(0, first + 1, 4))
        assert list(moved.places.offsets) == [500 + begin * ENTRY for begin in moved.places.firsts]
        assert [(one.segment, one.first, one.end) for one in rest] == ([(1, first + 4, 12)] if first < 8 else [])
    assert len(list(spans)) == 1


def test_what_is_moved_goes_to_no_other_segments_and_no_other_ledgers_span() -> None:
    for segment, ledger, first in ((3, 5, 4), (2, 6, 4)):
        _, spans = table()
        spans.place(2, 5, 0, 4, 48, 40)
        spans.place(1, ledger, first, 4, 48, 40)
        spans.move(ExtentPlace(segment, ledger, first, first + 4, 500, 40), 0)
        assert [(one.segment, one.ledger, one.first, one.end) for one in spans] == [
            (2, 5, 0, 4), (segment, ledger, 4, 8)
        ]  # fmt: skip


def test_what_is_moved_stands_behind_its_own_neighbour_of_three() -> None:
    """The span before it, not the one before that."""
    _, spans = table()
    spans.place(2, 5, 0, 4, 48, 40)
    spans.place(3, 5, 4, 4, 48, 40)
    spans.place(1, 5, 8, 4, 48, 40)
    spans.move(ExtentPlace(3, 5, 8, 12, 500, 40), 0)
    assert [(one.segment, one.first, one.end) for one in spans] == [(2, 0, 4), (3, 4, 12)]


def table() -> tuple[Home, SpanTable]:
    home = Home()
    return home, SpanTable(home, 7)


def test_a_moved_extent_takes_nothing_of_another_ledger() -> None:
    """Ordinals are given back when a write fails: the same ones may have been another ledger's."""
    _, spans = table()
    spans.place(1, 5, 0, 4, 48, 40)
    spans.move(ExtentPlace(2, 4, 0, 4, 48, 40), 0)
    (span,) = spans
    assert (span.segment, span.ledger) == (1, 5)


def test_moving_into_the_segment_where_it_lies_changes_nothing() -> None:
    home, spans = table()
    spans.place(1, 5, 0, 4, 48, 40)
    spans.move(ExtentPlace(1, 5, 0, 4, 96, 40), 0)
    (span,) = spans
    assert span.places is not None
    assert list(span.places.offsets) == [48]
    assert home.left == {}


def test_of_an_extent_whose_front_has_moved_already_the_rest_moves() -> None:
    home, spans = table()
    spans.place(1, 5, 0, 4, 48, 40)
    spans.move(ExtentPlace(2, 5, 0, 2, 48, 20), 0)
    assert [(span.first, span.end, span.segment) for span in spans] == [(0, 2, 2), (2, 4, 1)]
    spans.move(ExtentPlace(2, 5, 0, 4, 68, 40), 0)
    assert {span.segment for span in spans} == {2}
    assert home.left == {1: 2}


def test_an_extent_in_front_of_its_neighbour_in_the_file_gets_a_span_of_its_own() -> None:
    _, spans = table()
    spans.place(1, 5, 0, 4, 48, 40)
    spans.place(1, 5, 4, 4, 88, 40)
    spans.move(ExtentPlace(2, 5, 0, 4, 500, 40), 0)
    spans.move(ExtentPlace(2, 5, 4, 4 + 4, 48, 40), 0)
    assert [(span.first, span.end) for span in spans] == [(0, 4), (4, 8)]


def test_what_is_moved_behind_a_span_whose_blocks_are_lost_gets_a_span_of_its_own() -> None:
    """The checkpoint vouches for the span, and its segment has none of its extents: a start must not end here."""
    home, spans = table()
    lost = Span(1, 2, 5, 0, 4, 40)
    lost.places = ExtentOffsets()
    spans.add(lost)
    spans.place(1, 5, 4, 4, 48, 40)
    spans.move(ExtentPlace(2, 5, 4, 8, 88, 40), 0)
    assert [(span.first, span.end, span.segment) for span in spans] == [(0, 4, 2), (4, 8, 2)]
    assert [list(span.places.offsets) for span in spans if span.places is not None] == [[], [88]]
    assert home.left == {1: 2}


def test_both_sides_of_a_middle_that_was_moved_keep_their_own_places() -> None:
    """During a replay extents are still added to them."""
    _, spans = table()
    spans.place(1, 5, 0, 9, 48, 90)
    spans.move(ExtentPlace(2, 5, 3, 6, 48, 30), 0)
    before, _, after = spans
    assert before.places is not None
    assert after.places is not None
    assert before.places is not after.places
    assert before.places.to_bytes() == after.places.to_bytes()


def test_what_was_hidden_in_front_goes_with_what_is_moved() -> None:
    home, spans = table()
    spans.place(1, 5, 0, 10, 48, 100)
    home.occupancy.sizes = {1: 500}
    home.occupancy.uses()
    spans.drop_before(4)
    assert home.occupancy.living(1) == 60
    spans.move(ExtentPlace(2, 5, 4, 7, 48, 30), 4)
    assert [(span.first, span.end, span.living) for span in spans] == [(4, 7, 30), (7, 10, 30)]
    assert home.occupancy.living(1) == 30


def test_out_of_whose_middle_was_moved_is_smaller_by_what_was_moved() -> None:
    """Each side has what its entries take, and what was hidden in front stays hidden there."""
    home, spans = table()
    spans.place(1, 5, 0, 10, 48, 100)
    home.occupancy.sizes = {1: 500}
    home.occupancy.uses()
    spans.drop_before(2)
    spans.move(ExtentPlace(2, 5, 6, 8, 48, 20), 2)
    assert [(span.segment, span.first, span.end) for span in spans] == [(1, 0, 6), (2, 6, 8), (1, 8, 10)]
    before, moved, after = spans
    assert moved.bytes == 20
    assert (before.bytes, after.bytes) == (60, 20)
    assert (before.hidden, after.hidden) == (20, 0)
    assert home.occupancy.living(1) == before.living + after.living == 60


def test_each_side_of_a_middle_has_its_part_wherever_the_span_begins() -> None:
    _, spans = table()
    spans.place(1, 5, 0, 20, 48, 200)
    spans.place(2, 5, 20, 10, 48, 100)
    spans.move(ExtentPlace(3, 5, 26, 28, 48, 20), 0)
    assert [(span.first, span.end, span.bytes) for span in spans] == [
        (0, 20, 200), (20, 26, 60), (26, 28, 20), (28, 30, 20)
    ]  # fmt: skip


def test_whose_end_was_moved_is_smaller_by_what_was_moved() -> None:
    home, spans = table()
    spans.place(1, 5, 0, 10, 48, 100)
    home.occupancy.sizes = {1: 500}
    home.occupancy.uses()
    spans.move(ExtentPlace(2, 5, 7, 10, 48, 30), 0)
    assert [(span.segment, span.first, span.end, span.bytes) for span in spans] == [(1, 0, 7, 70), (2, 7, 10, 30)]
    assert home.occupancy.living(1) == 70


TestSpanTable = SpanMachine.TestCase
TestSpanTable.settings = settings(max_examples=300, stateful_step_count=40, deadline=None, derandomize=True)


def test_of_a_span_that_is_hidden_in_part_the_rest_lives_wherever_it_begins() -> None:
    """Both have ten entries, and three of each are let go, one after the other."""
    home, spans = table()
    spans.place(1, 1, 0, 10, 48, 10 * ENTRY)
    spans.place(2, 2, 10, 10, 48, 10 * ENTRY)
    spans.hide_before(3)
    assert (home.occupancy.living(1), home.occupancy.living(2)) == (7 * ENTRY, 10 * ENTRY)
    spans.drop_before(13)
    assert (home.occupancy.living(1), home.occupancy.living(2)) == (0, 7 * ENTRY)
