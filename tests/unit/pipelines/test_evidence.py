"""The checks find everything that can go wrong, at its place, and nothing in what is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.read_position import ReadPosition
from magnetar.pipelines.evidence.discrepancy import Discrepancy
from magnetar.pipelines.evidence.manifest_checks import check_chain, check_counts, check_last, check_log, check_ranges
from magnetar.pipelines.evidence.source_checks import check_sources
from magnetar.pipelines.evidence.table_checks import TableRows, check_committed, check_kept
from magnetar.pipelines.evidence.topic_checks import DeliveredRows, check_delivered
from magnetar.pipelines.state.manifest import BY_NAMES, Manifest, from_text, to_text
from tests.unit.pipelines.histories import QUERY, ROWS, TOPIC, history, messages, row_print

STARTS = {"flights": {TOPIC: ReadPosition(1, 0)}}


def test_a_gap_in_the_log_of_spark_is_found_and_what_it_does_not_keep_is_none() -> None:
    assert check_log([0, 1, 2], [0, 1], 100) == check_log([0, 1, 2], [0, 1, 2], 100) == check_log([], [], 100) == []
    assert check_log(list(range(51, 152)), list(range(50, 151)), 100) == []
    (gap,) = check_log([0, 2, 3], [0, 1, 2], 100)
    assert str(gap) == "batch 1: Spark's own log lacks offsets/1: it was removed"
    (gap,) = check_log([0, 1, 2, 3], [0, 3], 100)
    assert str(gap) == "batches 1 to 2: Spark's own log lacks commits/1, commits/2: it was removed"
    # The first ones, the last ones, and all.
    assert [one.where for one in check_log([1, 2], [0, 1, 2], 100)] == ["batch 0"]
    assert [one.where for one in check_log([0, 1], [0, 1, 2], 100)] == ["batch 2"]
    assert [one.where for one in check_log([0, 1, 2], [], 100)] == ["batches 0 to 1"]
    assert "and 94 more" in str(check_log([150], list(range(150)), 100)[0])
    # What is before --since is not looked at.
    assert check_log([0, 2, 3], [0, 1, 2], 100, 2) == []


class Topic:
    """A source's topic, one row per entry; counts how much is read."""

    def __init__(self, batches: int) -> None:
        self.rows = {entry: row_print(entry) for entry in range(batches * ROWS)}
        self.read = 0

    def recount(
        self, _name: str, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition]
    ) -> Mapping[str, tuple[int, int]]:
        there = [self.rows[one] for one in range(start[TOPIC].entry, end[TOPIC].entry) if one in self.rows]
        self.read += len(there)
        return {TOPIC: (len(there), sum(there))}


def deliver(sent: list[tuple[str, int, int]]) -> DeliveredRows:
    seen = DeliveredRows(QUERY, "out")
    for index, one in enumerate(sent):
        seen.add("t", ReadPosition(5, index), *one)
    return seen


def judge(manifests: list[Manifest], topic: Topic, sent: list[tuple[str, int, int]]) -> list[Discrepancy]:
    return [
        *check_chain(manifests),
        *check_ranges(manifests, STARTS, lambda _: None),
        *check_counts(manifests),
        *check_sources(manifests, topic.recount),
        *check_delivered(manifests, "out", deliver(sent)),
    ]


def test_a_right_history_has_no_findings() -> None:
    topic = Topic(5)
    assert judge(history(5), topic, messages(5)) == []
    assert topic.read == 5 * ROWS


def test_a_micro_batch_that_is_under_way_is_no_finding() -> None:
    seen = deliver(messages(4))
    assert check_delivered(history(3), "out", seen, under_way={3}) == []
    # Nothing of it is in the checkpoint: that was set back, if only by one.
    (found,) = check_delivered(history(3), "out", seen)
    assert str(found).startswith("batch 3, output out: rows are in the topic, and no manifest") and "set back" in str(
        found
    )
    (found,) = check_delivered(history(3), "out", deliver([*messages(3), *messages(5)[-3:]]), under_way={3})
    assert found.where == "batch 4, output out"


@given(st.integers(1, 9), st.data())
def test_one_lost_or_changed_message_is_found_in_its_batch(batches: int, data: st.DataObject) -> None:
    topic = Topic(batches)
    entry = data.draw(st.sampled_from(sorted(topic.rows)))
    if data.draw(st.booleans()):
        del topic.rows[entry]
    else:
        topic.rows[entry] += 1
    (found,) = check_sources(history(batches), topic.recount)
    assert found.where == f"batch {entry // ROWS}, source flights"
    assert TOPIC in found.text


@given(st.integers(1, 6), st.data())
def test_an_output_row_that_is_missing_repeated_or_changed(batches: int, data: st.DataObject) -> None:
    sent = messages(batches)
    index = data.draw(st.integers(0, len(sent) - 1))
    change = data.draw(st.sampled_from(["missing", "repeated", "changed"]))
    batch = index // (ROWS - 2)
    if change == "missing":
        del sent[index]
    elif change == "repeated":
        sent.insert(data.draw(st.integers(index, len(sent))), sent[index])
    else:
        sent[index] = (*sent[index][:2], sent[index][2] + 1)
    found = check_delivered(history(batches), "out", deliver(sent))
    assert found and all(one.where.startswith(f"batch {batch}") for one in found)
    assert {"missing": "are there", "repeated": "repeats row", "changed": "other contents"}[change] in " ".join(
        one.text for one in found
    )


def test_a_finding_in_one_micro_batch_hides_none_in_another() -> None:
    sent = messages(3)
    del sent[0]
    sent[-1] = (*sent[-1][:2], sent[-1][2] + 1)
    found = check_delivered(history(3), "out", deliver(sent))
    assert {one.where.split(",")[0] for one in found} == {"batch 0", "batch 2"}
    assert found[-1].text.endswith("with other contents")


@given(st.integers(2, 6), st.data())
def test_a_manifest_cannot_be_changed_or_taken_away(batches: int, data: st.DataObject) -> None:
    manifests = history(batches)
    batch = data.draw(st.integers(0, batches - 1))
    if data.draw(st.booleans()):
        wrong = replace(manifests[batch], times={**manifests[batch].times, "ended_ms": 1})
        if data.draw(st.booleans()):
            wrong = wrong.sealed()  # by someone who knows how
        manifests[batch] = wrong
        found = check_chain(manifests)
        # The last one of a chain can be sealed anew: nothing follows it yet.
        assert bool(found) == (wrong.digest() != wrong.fingerprint or batch < batches - 1)
        assert all(one.where in (f"batch {batch}", f"batch {batch + 1}") for one in found)
    elif batch < batches - 1:
        del manifests[batch]
        assert check_chain(manifests)[0].where == f"batch {batch}"


@pytest.mark.parametrize(
    ("begins", "findings"), [(9, "1:9:0 to 1:10:0 was read twice"), (12, "1:10:0 to 1:12:0 was skipped")]
)
def test_ranges_must_join(begins: int, findings: str) -> None:
    manifests = history(3)
    source = replace(manifests[1].sources["flights"], start={TOPIC: f"1:{begins}:0"})
    manifests[1] = replace(manifests[1], sources={"flights": source})
    (found,) = check_ranges(manifests, STARTS, lambda _: None)
    assert found.where == "batch 1, source flights" and findings in found.text


def test_ranges_against_the_beginning_and_spark_s_log() -> None:
    (found,) = check_ranges(history(2), {"flights": {TOPIC: ReadPosition(0, 3)}}, lambda _: None)
    assert found.where == "batch 0, source flights" and "was skipped" in found.text
    log = {0: {"flights": {TOPIC: ReadPosition(1, 10)}}, 1: {"flights": {TOPIC: ReadPosition(1, 21)}}}
    (found,) = check_ranges(history(3), STARTS, log.get)
    assert found.where == "batch 1, source flights"


def test_counts_must_add_up() -> None:
    (one,) = history(1)
    short = replace(one, outputs={**one.outputs, "out": replace(one.outputs["out"], rows=7)})
    assert "7 rows were written of 8 that passed flights" in str(check_counts([short])[0])
    lost = replace(one, outputs={**one.outputs, "dead-letters": replace(one.outputs["dead-letters"], rows=0)})
    assert "1 rows were dead, and 0 were written as dead letters" in str(check_counts([lost])[0])
    selected = replace(one, outputs={**one.outputs, "out": replace(one.outputs["out"], rows=7, of=None)})
    assert check_counts([selected]) == []
    check = replace(one.checks["flights"], rows=9)
    assert "10 rows were read and 9 judged" in str(check_counts([replace(one, checks={"flights": check})])[0])


def test_a_topic_that_is_gone_is_one_finding() -> None:
    (found,) = check_delivered(history(3), "out", deliver([]))
    assert "24 rows were written and none is there" in found.text and "subscription" in found.text


def test_a_table_has_one_commit_of_each_micro_batch() -> None:
    manifests = history(3)

    def findings(commits: dict[int, list[int]], *, first: int = 0, whole: bool = True) -> list[str]:
        return [str(one) for one in check_committed(manifests, "out", commits, first, whole)]

    assert check_committed(manifests, "out", {0: [8], 1: [8], 2: [8], 3: [8]}, 0, True, {3}) == []
    assert "no manifest names" in findings({0: [8], 1: [8], 2: [8], 3: [8]})[0]
    assert "batch 1, output out: t: 8 rows were written, and no commit has them" in findings({0: [8], 2: [8]})[0]
    assert "committed 2 times" in findings({0: [8], 1: [8, 8], 2: [8]})[0]
    assert "no manifest names" in findings({0: [8], 1: [8], 2: [8], 5: [8]})[0]
    assert findings({2: [8]}, whole=False) == findings({2: [8]}, first=2) == []


def test_other_producers_are_counted_apart() -> None:
    seen = deliver([("somebody", 5, 1), (f"spark.{QUERY}/out2.0", 5, 1), *messages(1)])
    assert seen.others == 2
    assert check_delivered(history(1), "out", seen) == []


def test_what_spark_has_finished_has_a_manifest() -> None:
    assert check_last([], -1) == []
    assert check_last(history(2), 1) == []
    assert check_last(history(2)[1:], 0) == []
    assert check_last([], 2, 3) == []
    assert [one.where for one in check_last(history(2), 2)] == ["batch 2"]
    assert [one.where for one in check_last([], 0)] == ["batch 0"]


def test_values_that_a_schema_encodes_are_counted_only() -> None:
    manifests, sent = history(2), [(producer, number, 0) for producer, number, _ in messages(2)]
    assert check_delivered(manifests, "out", deliver(sent), contents=False) == []
    assert len(check_delivered(manifests, "out", deliver(sent[1:]), contents=False)) == 2
    assert "other contents" in str(check_delivered(manifests, "out", deliver(sent))[0])


def test_rows_that_a_table_keeps_are_compared_by_what_stands_together() -> None:
    manifests = [
        replace(one, outputs={**one.outputs, "out": replace(one.outputs["out"], by=BY_NAMES)}) for one in history(4)
    ]
    total = [int(one.outputs["out"].print, 16) for one in manifests]

    def findings(*tables: TableRows, first: int = 0) -> list[str]:
        return [str(one) for one in check_kept(manifests, "out", tables, first)]

    assert findings(TableRows(frozenset({0}), 8, total[0]), TableRows(frozenset({1, 2}), 16, total[1] + total[2])) == []
    assert findings(TableRows(frozenset({3}), 8, None)) == []
    (less,) = findings(TableRows(frozenset({1, 2}), 15, 0, "; by version 7"))
    assert less == "batches 1 to 2, output out: t: 16 rows were written and 15 are there; by version 7"
    (other,) = findings(TableRows(frozenset({3}), 8, total[3] + 1))
    assert other.startswith("batch 3, output out: t: as many rows as were written, but with other contents")
    assert findings(TableRows(frozenset({0}), 7, 0), first=1) == []
    # One that is under way has no manifest yet.
    assert findings(TableRows(frozenset({4}), 3, 0)) == []


def test_what_an_earlier_release_wrote_keeps_its_fingerprint() -> None:
    """The field ``by`` came later, and is no part of what was sealed without it."""
    (one,) = history(1)
    text = json.loads(to_text(one))
    for part in text["outputs"].values():
        del part["by"]
    assert from_text(json.dumps(text), "x").digest() == one.fingerprint
    named = replace(one, outputs={"out": replace(one.outputs["out"], by=BY_NAMES)})
    assert named.digest() != replace(one, outputs={"out": one.outputs["out"]}).digest()
