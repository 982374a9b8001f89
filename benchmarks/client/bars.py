"""What our client has to reach beside the official one, and the table that says whether it does."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

Sample = dict[str, float]
Key = tuple[str, int, str]
"""Task, bytes and client."""

REFERENCE = "official"
RATIOS = {"send": 3.0, "send-each": 3.0, "receive": 0.8}
"""Messages a second, in times the official client's of the same round."""
MEASURE = {"send": "send-each"}
"""Whose rate a task is held against where not its own: the usual program of the official client has callbacks."""
RATES = {("send", 100): 1_000_000.0, ("receive", 100): 1_500_000.0}
"""Messages a second in columns. Of 1,024 bytes a million would be 1 GB/s, of which the disk has a word to say."""
LATENCY = 1.0
"""The most that p50 and p99 may be, in times the official client's of the same turn."""


class Verdict(NamedTuple):
    """One row of the table."""

    task: str
    size: int
    client: str
    cells: tuple[str, ...]
    ratio: float | None
    bar: str
    reached: bool | None


def _median(samples: list[Sample], name: str) -> float:
    return statistics.median(one[name] for one in samples)


def ratio(ours: list[Sample], theirs: list[Sample], name: str) -> float:
    """Return the median of the ratios, each of two measurements of one round or turn."""
    return statistics.median(one[name] / other[name] for one, other in zip(ours, theirs, strict=True))


def verdicts(found: dict[Key, list[Sample]], latencies: dict[str, list[Sample]]) -> Iterator[Verdict]:
    """Compare: ``found`` has a sample of each round, ``latencies`` of each client one of each turn."""
    for (task, size, client), samples in sorted(found.items(), key=lambda one: one[0][:2]):
        cells = f"{_median(samples, 'rate'):,.0f}/s", f"{_median(samples, 'cpu'):.2f} µs"
        theirs = found.get((task, size, REFERENCE))
        times = None if theirs is None or client == REFERENCE else ratio(samples, theirs, "rate")
        if client == "columns":
            least = RATES.get((task, size))
            reached = None if least is None else _median(samples, "rate") >= least
            yield Verdict(task, size, client, cells, times, "" if least is None else f">= {least:,.0f}/s", reached)
        elif times is None:
            yield Verdict(task, size, client, cells, None, "", None)
        else:
            measure = MEASURE.get(task, task)
            against = ratio(samples, found.get((measure, size, REFERENCE), theirs or []), "rate")
            bar = f">= {RATIOS[task]:g} x" + (f" its {measure}: {against:.2f}" if measure != task else "")
            yield Verdict(task, size, client, cells, times, bar, against >= RATIOS[task])
    for name in ("p50", "p99"):
        for client, turns in latencies.items():
            cells = f"{_median(turns, name):.2f} ms", f"{_median(turns, 'cpu'):.0f} µs"
            if client == REFERENCE:
                yield Verdict(f"latency {name}", 100, client, cells, None, "", None)
            else:
                times = ratio(turns, latencies[REFERENCE], name)
                yield Verdict(f"latency {name}", 100, client, cells, times, f"<= {LATENCY:g} x", times <= LATENCY)


def table(rows: list[Verdict]) -> str:
    """Return the rows for a page, with what is not reached in capitals."""
    lines = [
        "| task | bytes | client | median | CPU each | times official | bar | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        times = "" if one.ratio is None else f"{one.ratio:.2f}"
        said = {None: "", True: "pass", False: "FAIL"}[one.reached]
        lines.append(
            f"| {one.task} | {one.size} | {one.client} | {' | '.join(one.cells)} | {times} | {one.bar} | {said} |"
        )
    missed = sum(one.reached is False for one in rows)
    lines += ["", f"{missed} of {sum(one.reached is not None for one in rows)} bars are missed."]
    return "\n".join(lines)
