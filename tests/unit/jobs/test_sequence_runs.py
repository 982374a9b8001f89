"""Runs of sequence ids hold the same information as the list of all ids."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.client.read_position import ReadPosition
from magnetar.jobs.verification.sequence_runs import (
    IdOverlap,
    RunBuilder,
    SequenceRun,
    breaks,
    coarse,
    goes_on,
    merged,
    overlaps,
)

MESSAGES = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 12)), max_size=40)


def batch_of(messages: list[tuple[str, int]], first: int) -> pa.RecordBatch:
    count = len(messages)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([1] * count, pa.int64()),
            pa.array(range(first, first + count), pa.int64()),
            pa.array([0] * count, pa.int32()),
            pa.array([name for name, _ in messages], pa.string()),
            pa.array([number for _, number in messages], pa.int64()),
        ],
        names=list(RunBuilder.COLUMNS),
    )


def runs_of(messages: list[tuple[str, int]], cuts: list[int], *, dense: bool) -> list[SequenceRun]:
    """Units and batches cut at random places."""
    out: list[SequenceRun] = []
    borders = sorted({0, len(messages), *(cut for cut in cuts if cut < len(messages))})
    for number, (at, to) in enumerate(pairwise(borders)):
        maker = RunBuilder("t", dense=dense)
        middle = (at + to) // 2 if number % 2 else to
        for start, stop in ((at, middle), (middle, to)):
            out += maker.add(batch_of(messages[start:stop], start))
        out += maker.finish()
    return merged(out, dense=dense)


@settings(deadline=None)
@given(MESSAGES, st.lists(st.integers(0, 40), max_size=4), st.booleans())
def test_runs_hold_the_ids_of_all_messages(messages: list[tuple[str, int]], cuts: list[int], dense: bool) -> None:
    runs = runs_of(messages, cuts, dense=dense)
    want: list[SequenceRun] = []
    for producer in "abc":
        mine = [(at, number) for at, (name, number) in enumerate(messages) if name == producer]
        for at, number in mine:
            one = SequenceRun("t", producer, number, number, 1, ReadPosition(1, at), ReadPosition(1, at))
            if want and want[-1].producer == producer and goes_on(want[-1], one, dense=dense):
                want[-1] = want[-1]._replace(last=number, messages=want[-1].messages + 1, end=one.end)
            else:
                want.append(one)
    assert runs == want
    assert sum(run.messages for run in runs) == len(messages)


@settings(deadline=None)
@given(MESSAGES, st.booleans())
def test_overlaps_hold_every_id_that_is_there_twice(messages: list[tuple[str, int]], dense: bool) -> None:
    found = coarse(overlaps(runs_of(messages, [7], dense=dense)), 2)
    for (producer, number), count in Counter(messages).items():
        if count > 1:
            assert any(one.producer == producer and one.first <= number <= one.last for one in found)
    assert all(len([one for one in found if one.producer == producer]) <= 2 for producer in "abc")


@settings(deadline=None)
@given(MESSAGES)
def test_breaks_are_where_ids_go_down(messages: list[tuple[str, int]]) -> None:
    want = []
    for producer in "abc":
        mine = [(at, number) for at, (name, number) in enumerate(messages) if name == producer]
        want += [ReadPosition(1, at) for (_, before), (at, number) in pairwise(mine) if number <= before]
    assert [one.after.start for one in breaks(runs_of(messages, [5, 9], dense=False))] == want


def test_clean_topics_have_one_run_and_no_overlap() -> None:
    messages = [("ab"[number % 2], number) for number in range(1000)]
    runs = runs_of(messages, [100, 500], dense=False)
    assert [(run.producer, run.first, run.last, run.messages) for run in runs] == [
        ("a", 0, 998, 500),
        ("b", 1, 999, 500),
    ]
    assert overlaps(runs) == []


def test_coarse_keeps_the_widest_gaps() -> None:
    found = [IdOverlap("t", "a", at, at + 1) for at in (0, 10, 100, 111)]
    assert coarse(found, 2) == [IdOverlap("t", "a", 0, 11), IdOverlap("t", "a", 100, 112)]
    assert coarse(found, 10) == found
