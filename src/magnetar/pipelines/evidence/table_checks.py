"""Checks that a table has one commit of each micro-batch, and still holds its rows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from magnetar.pipelines.evidence.discrepancy import NO_MANIFEST, Discrepancy, named
from magnetar.pipelines.state.manifest import BY_NAMES, Manifest, print_text


def check_committed(
    manifests: Sequence[Manifest],
    name: str,
    commits: Mapping[int, Sequence[int]],
    first: int,
    whole: bool,
    under_way: Collection[int] = (),
) -> list[Discrepancy]:
    """Check a table's commits, given as rows by micro-batch. Without its ``whole`` history old ones may be unknown."""
    known = {one.batch: one.outputs[name] for one in manifests if name in one.outputs}
    last, oldest = max(known, default=-1), min(commits, default=0)
    found = []
    for batch in sorted(known.keys() | commits.keys()):
        where, there = f"batch {batch}, output {name}", commits.get(batch, ())
        output = known.get(batch)
        if batch < first or (not whole and batch < oldest):
            continue
        if output is None:
            if batch > last and batch not in under_way:
                found.append(Discrepancy(where, f"a commit is in the table, and {NO_MANIFEST}"))
        elif len(there) > 1:
            found.append(Discrepancy(where, f"{output.target}: it was committed {len(there)} times"))
        elif not there and output.rows:
            found.append(
                Discrepancy(where, f"{output.target}: {output.rows} rows were written, and no commit has them")
            )
        elif sum(there) != output.rows:
            found.append(
                Discrepancy(where, f"{output.target}: {output.rows} rows were written, the commit has {sum(there)}")
            )
    return found


class TableRows(NamedTuple):
    """What a table holds now of some micro-batches, whose rows may be in the same files."""

    batches: frozenset[int]
    rows: int
    print: int | None
    """The sum of `expressions.row_print`; None if the contents were not read."""
    remark: str = ""
    """What happened to the files."""


def check_kept(
    manifests: Sequence[Manifest], name: str, tables: Iterable[TableRows], first: int = 0
) -> list[Discrepancy]:
    """Check the rows of a table's files against the manifests, for micro-batches that have one."""
    known = {one.batch: one.outputs[name] for one in manifests if name in one.outputs}
    found = []
    for there in tables:
        if not there.batches <= known.keys() or max(there.batches) < first:
            continue
        written = sum(known[batch].rows for batch in there.batches)
        where = f"{named(there.batches)}, output {name}"
        target = known[min(there.batches)].target
        if there.rows != written:
            text = f"{written} rows were written and {there.rows} are there{there.remark}"
            found.append(Discrepancy(where, f"{target}: {text}"))
        elif there.print is not None and all(known[batch].by == BY_NAMES for batch in there.batches):
            total = sum(int(known[batch].print, 16) for batch in there.batches)
            if print_text(there.print) != print_text(total):
                text = f"as many rows as were written, but with other contents{there.remark}"
                found.append(Discrepancy(where, f"{target}: {text}"))
    return found
