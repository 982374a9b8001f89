"""Checks of the manifests themselves, and against Spark's checkpoint. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from magnetar.client.read_position import START, ReadPosition
from magnetar.pipelines.declaration.model import DEAD_LETTERS
from magnetar.pipelines.evidence.discrepancy import LISTED_MAX, Discrepancy, named
from magnetar.pipelines.state.manifest import FIRST, Manifest

UNKEPT_KINDS: Final = ("console", "noop")
"""Kinds of outputs that keep nothing."""


def places(texts: Mapping[str, str]) -> dict[str, ReadPosition]:
    """Parse the positions of a manifest."""
    return {topic: ReadPosition.parse(text) for topic, text in texts.items()}


def check_chain(manifests: Sequence[Manifest], first: int = 0) -> list[Discrepancy]:
    """Check that the manifests are there from batch ``first`` on, unchanged, and in one chain."""
    found = []
    expected = first
    before: Manifest | None = None
    for one in manifests:
        if one.batch != expected:
            gone = f"batch {expected}" if one.batch == expected + 1 else f"batches {expected} to {one.batch - 1}"
            found.append(Discrepancy(gone, "the manifest is missing, while a later one is there"))
            before = None
        if one.digest() != one.fingerprint:
            found.append(Discrepancy(f"batch {one.batch}", "the manifest was changed after it was written"))
        seal = FIRST if one.batch == 0 else before.fingerprint if before is not None else None
        if seal is not None and one.previous != seal:
            found.append(
                Discrepancy(
                    f"batch {one.batch}", f"the manifest does not follow that of batch {one.batch - 1} as it is now"
                )
            )
        expected, before = one.batch + 1, one
    return found


def check_ranges(
    manifests: Sequence[Manifest],
    starts: Mapping[str, Mapping[str, ReadPosition]],
    logged: Callable[[int], Mapping[str, Mapping[str, ReadPosition]] | None],
) -> list[Discrepancy]:
    """Check that each micro-batch begins where the previous one ended, as Spark's checkpoint has it too.

    ``starts``: where each source began; ``logged``: the ends in Spark's checkpoint, None where it has none.
    """
    found: list[Discrepancy] = []
    before: Manifest | None = None
    for one in manifests:
        log = logged(one.batch)
        for name, source in one.sources.items():
            start, end = places(source.start), places(source.end)
            where = f"batch {one.batch}, source {name}"
            expected: Mapping[str, ReadPosition] | None = None
            if one.batch == 0:
                expected = starts.get(name, {})
            elif before is not None and before.batch == one.batch - 1 and name in before.sources:
                expected = places(before.sources[name].end)
            if expected is not None:
                found += _joined(where, expected, start)
            for topic, place in end.items():
                if place < start.get(topic, START):
                    found.append(Discrepancy(where, f"{topic}: the range ends at {place}, before it begins"))
            if log is not None and name in log and dict(log[name]) != end:
                found.append(Discrepancy(where, "Spark's checkpoint has another end of this range"))
        before = one
    return found


def _joined(
    where: str, expected: Mapping[str, ReadPosition], start: Mapping[str, ReadPosition]
) -> Iterator[Discrepancy]:
    for topic in sorted(expected.keys() | start.keys()):
        ended, begins = expected.get(topic, START), start.get(topic, START)
        if begins > ended:
            yield Discrepancy(where, f"{topic}: {ended} to {begins} was skipped")
        elif begins < ended:
            yield Discrepancy(where, f"{topic}: {begins} to {ended} was read twice")


def check_counts(manifests: Sequence[Manifest]) -> list[Discrepancy]:
    """Check that every row is in a sink, dead or dropped, wherever rows are neither selected nor made on the way."""
    found = []
    for one in manifests:
        where = f"batch {one.batch}"
        for name, source in one.sources.items():
            read, judged = sum(source.rows.values()), one.checks[name].rows if name in one.checks else -1
            if read != judged:
                found.append(Discrepancy(where, f"source {name}: {read} rows were read and {judged} judged"))
        for name, check in one.checks.items():
            with_cause = sum(check.causes.values())
            if with_cause != check.dead + check.dropped:
                found.append(
                    Discrepancy(where, f"{name}: {check.dead + check.dropped} rows left, {with_cause} with a cause")
                )
        if (letters := one.outputs.get(DEAD_LETTERS)) is not None and letters.rows != one.dead:
            found.append(
                Discrepancy(where, f"{one.dead} rows were dead, and {letters.rows} were written as dead letters")
            )
        for name, output in one.outputs.items():
            if output.of and (passed := one.checks[output.of[-1]].passed) != output.rows:
                found.append(
                    Discrepancy(
                        where, f"sink {name}: {output.rows} rows were written of {passed} that passed {output.of[-1]}"
                    )
                )
            for earlier, later in pairwise(output.of or ()):
                passed, came = one.checks[earlier].passed, one.checks[later].rows
                if passed != came:
                    found.append(Discrepancy(where, f"{passed} rows passed {earlier} and {came} came to {later}"))
    return found


def left_outputs(manifests: Sequence[Manifest], declared: Mapping[str, Container[str]]) -> Iterator[str]:
    """Yield where rows were written that the file does not name any more: a sink that was removed, renamed or made
    another kind of sink. ``declared``: the kinds of each output that can be looked at."""
    rows: dict[tuple[str, str], int] = {}
    for one in manifests:
        for name, output in one.outputs.items():
            if output.kind not in UNKEPT_KINDS and output.kind not in declared.get(name, ()):
                rows[name, output.target] = rows.get((name, output.target), 0) + output.rows
    for (name, target), count in rows.items():
        if count:
            title = "dead letters" if name == DEAD_LETTERS else f"sink {name}"
            yield f"{title}: {count:,} rows in {target}, which the file does not name any more"


def check_log(begun: Sequence[int], finished: Sequence[int], kept: int, first: int = 0) -> list[Discrepancy]:
    """Check that Spark's own log has no gap in what it keeps, which is the last ``kept`` micro-batches.

    A micro-batch is noted as finished before the next one is noted as begun.
    """
    found = []
    last = {"offsets": max((*begun, *finished), default=-1), "commits": max(max(begun, default=0) - 1, *finished, -1)}
    for name, there in (("offsets", begun), ("commits", finished)):
        expected = range(max(first, last[name] - kept + 1), last[name] + 1)
        if gone := sorted(set(expected) - set(there)):
            what = ", ".join(f"{name}/{batch}" for batch in gone[:LISTED_MAX])
            more = f" and {len(gone) - LISTED_MAX} more" if len(gone) > LISTED_MAX else ""
            found.append(Discrepancy(named(gone), f"Spark's own log lacks {what}{more}: it was removed"))
    return found


def check_last(manifests: Sequence[Manifest], committed: int, first: int = 0) -> list[Discrepancy]:
    """Check that the last micro-batch that Spark has finished has a manifest; ``committed`` is -1 if there is none."""
    if committed < first or (manifests and manifests[-1].batch >= committed):
        return []
    return [Discrepancy(f"batch {committed}", "Spark has finished it, and there is no manifest")]
