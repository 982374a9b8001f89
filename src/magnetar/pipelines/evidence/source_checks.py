"""Checks that the sources still hold the rows that were read. Pure.

The ranges are read again, all micro-batches at once; only where the sums differ the range is halved, until the
micro-batch is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from magnetar.client.read_position import START, ReadPosition
from magnetar.pipelines.evidence.discrepancy import Discrepancy
from magnetar.pipelines.evidence.manifest_checks import places
from magnetar.pipelines.state.manifest import Manifest, print_text

Recount = Callable[[str, Mapping[str, ReadPosition], Mapping[str, ReadPosition]], Mapping[str, tuple[int, int]]]
"""Maps source, start and end to rows and sum of prints by topic-partition, as they are now."""


def runs(manifests: Sequence[Manifest]) -> Iterator[Sequence[Manifest]]:
    """Yield runs of manifests without a gap."""
    begin = 0
    for index in range(1, len(manifests) + 1):
        if index == len(manifests) or manifests[index].batch != manifests[index - 1].batch + 1:
            yield manifests[begin:index]
            begin = index


def check_sources(manifests: Sequence[Manifest], recount: Recount) -> list[Discrepancy]:
    """Check that all rows that were read are still there and the same."""
    found: list[Discrepancy] = []
    for run in runs(manifests):
        for name in sorted({name for one in run for name in one.sources}):
            found += _compared(run, name, recount)
    return found


def _compared(run: Sequence[Manifest], name: str, recount: Recount) -> list[Discrepancy]:
    parts = [one.sources[name] for one in run if name in one.sources]
    if not parts:
        return []
    written: dict[str, tuple[int, int]] = {}
    for part in parts:
        for topic, rows in part.rows.items():
            before = written.get(topic, (0, 0))
            written[topic] = before[0] + rows, before[1] + int(part.prints[topic], 16)
    now = recount(name, places(parts[0].start), places(parts[-1].end))
    wrong = [
        topic
        for topic, (rows, total) in written.items()
        if (now.get(topic, (0, 0))[0], print_text(now.get(topic, (0, 0))[1])) != (rows, print_text(total))
    ]
    if not wrong:
        return []
    if len(run) > 1:
        middle = len(run) // 2
        inside = _compared(run[:middle], name, recount) + _compared(run[middle:], name, recount)
        if inside:
            return inside
    where = f"batch {run[0].batch}" + (f" to {run[-1].batch}" if len(run) > 1 else "") + f", source {name}"
    found = []
    for topic in sorted(wrong):
        rows, there = written[topic][0], now.get(topic, (0, 0))[0]
        between = f"{parts[0].start.get(topic, str(START))} to {parts[-1].end.get(topic)}"
        text = (
            f"the range {between} had {rows} rows and has {there} now" if rows != there else f"rows of {between} differ"
        )
        found.append(Discrepancy(where, f"{topic}: {text}"))
    return found
