"""Makes tables of samples: medians over rounds, ratios to the first broker's rivals, and the JSON that is kept.

A sample with problems (an entry lost, altered, out of order, delivered again to a later consumer after its ack, or a
run that did not finish) is shown with an exclamation mark and its problems are listed below the table: a wrong answer
has no rate.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.workloads import Outcome, Workload

MEGA = 1_000_000


@dataclass
class Sample:
    """One workload on one broker in one round."""

    broker: str
    workload: str
    round: int
    entries: int = 0
    seconds: float = 0.0
    entries_per_second: float = 0.0
    messages_per_second: float = 0.0
    payload_mb_per_second: float = 0.0
    broker_cpu_us_per_entry: float = 0.0
    generator_cpu_us_per_entry: float = 0.0
    peak_resident_mb: float = 0.0
    latency_ms: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, broker: str, round_: int, workload: Workload, outcome: Outcome, cpu: float, peak: int) -> Sample:
        return cls(
            broker=broker,
            workload=workload.name,
            round=round_,
            entries=outcome.entries,
            seconds=outcome.seconds,
            entries_per_second=outcome.entries / outcome.seconds,
            messages_per_second=outcome.messages / outcome.seconds,
            payload_mb_per_second=outcome.payload_bytes / outcome.seconds / MEGA,
            broker_cpu_us_per_entry=cpu / outcome.entries * MEGA,
            generator_cpu_us_per_entry=outcome.generator_seconds / outcome.entries * MEGA,
            peak_resident_mb=peak / MEGA,
            latency_ms=outcome.latency_ms,
            problems=outcome.problems,
            remarks=outcome.remarks,
        )


@dataclass
class Results:
    """Everything of one run."""

    machine: dict[str, Any]
    brokers: dict[str, dict[str, Any]]
    samples: list[Sample] = field(default_factory=list)

    def of(self, broker: str, workload: str) -> list[Sample]:
        return [one for one in self.samples if one.broker == broker and one.workload == workload]

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        raw = json.loads(path.read_text())
        return cls(raw["machine"], raw["brokers"], [Sample(**one) for one in raw["samples"]])


def machine() -> dict[str, Any]:
    """What the figures depend on; the load average says whether the machine was quiet."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "cpus": os.cpu_count(),
        "cpu": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_at_start": os.getloadavg()[0],
        "commit": commit,
    }


def median(samples: Iterable[Sample], key: str) -> float:
    """The median of an attribute, or of a latency if the key is not one; 0 without samples."""
    values = [one.latency_ms.get(key, 0.0) if key not in one.__dict__ else getattr(one, key) for one in samples]
    return float(statistics.median(values)) if values else 0.0


def spread(samples: Sequence[Sample]) -> str:
    rates = [one.entries_per_second for one in samples]
    return f"{_rate(min(rates))}–{_rate(max(rates))}"


def _rate(value: float) -> str:
    return f"{value / 1000:.1f} k" if value >= 1000 else f"{value:.0f}"


def _grid(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns; numbers to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
        if not number:
            lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _names(results: Results, latencies: bool) -> list[str]:
    seen = dict.fromkeys(one.workload for one in results.samples)
    return [name for name in seen if name.startswith("latency") == latencies]


def throughput_table(results: Results) -> str:
    """Rates, CPU and memory; medians over rounds, then the range of the rate."""
    rows = [["workload", "broker", "entries/s", "range", "msg/s", "MB/s", "CPU µs/entry", "peak MB", "generator µs"]]
    for name in _names(results, latencies=False):
        for broker in results.brokers:
            samples = results.of(broker, name)
            if not samples:
                continue
            good = [one for one in samples if not one.problems]
            mark = "" if len(good) == len(samples) else " !"
            if not good:
                rows.append([name, broker + mark, *["-"] * 7])
                continue
            rows.append(
                [
                    name,
                    broker + mark,
                    _rate(median(good, "entries_per_second")),
                    spread(good),
                    _rate(median(good, "messages_per_second")),
                    f"{median(good, 'payload_mb_per_second'):.0f}",
                    f"{median(good, 'broker_cpu_us_per_entry'):.1f}",
                    f"{median(good, 'peak_resident_mb'):.0f}",
                    f"{median(good, 'generator_cpu_us_per_entry'):.1f}",
                ]
            )
    return _grid(rows) if len(rows) > 1 else ""


def latency_table(results: Results) -> str:
    """Publish latency, medians over rounds; the generator's own lateness is part of each figure."""
    rows = [
        ["workload", "broker", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "generator p99", "CPU µs/entry", "peak MB"]
    ]
    keys = ("p50", "p99", "p99.9", "max", "generator p99")
    for name in _names(results, latencies=True):
        for broker in results.brokers:
            samples = results.of(broker, name)
            good = [one for one in samples if not one.problems]
            if samples and not good:
                rows.append([name, broker + " !", *["-"] * 7])
            elif good:
                cells = [f"{median(good, key):.2f}" for key in keys]
                cpu, peak = median(good, "broker_cpu_us_per_entry"), median(good, "peak_resident_mb")
                rows.append(
                    [name, broker + (" !" if len(good) < len(samples) else ""), *cells, f"{cpu:.1f}", f"{peak:.0f}"]
                )
    return _grid(rows) if len(rows) > 1 else ""


def ratio_table(results: Results) -> str:
    """The first broker against each other one; a rate above 1 is faster, a latency or CPU below 1 is better."""
    subject, *references = results.brokers
    head = [f"{subject} / {reference}" for reference in references]
    rows = [["workload", "measure", *head, *(["/ better of them"] if len(references) > 1 else [])]]
    for name in _names(results, latencies=False) + _names(results, latencies=True):
        is_latency = name.startswith("latency")
        measures = (("p50", True), ("p99", True), ("p99.9", True)) if is_latency else (
            ("entries_per_second", False), ("broker_cpu_us_per_entry", True))  # fmt: skip
        ours = [one for one in results.of(subject, name) if not one.problems]
        for key, low_is_good in measures:
            theirs = [
                median([one for one in results.of(reference, name) if not one.problems], key)
                for reference in references
            ]
            mine = median(ours, key)
            if not mine or not any(theirs):
                continue
            rivals = zip(theirs, references, strict=True)
            known = [value for value, reference in rivals if value and not _is_limit(results.brokers[reference])]
            best = (min if low_is_good else max)(known, default=0.0)
            cells = [f"{mine / value:.2f}" if value else "-" for value in theirs]
            label = {"entries_per_second": "rate", "broker_cpu_us_per_entry": "CPU"}.get(key, key)
            rows.append(
                [name, label, *cells, *([f"{mine / best:.2f}" if best else "-"] if len(references) > 1 else [])]
            )
    return _grid(rows) if len(rows) > 1 else ""


def _is_limit(about: Mapping[str, object]) -> bool:
    """Whether it shows what generator or disk allow, and is no broker; older results call it bare."""
    return bool(about.get("limit") or about.get("bare"))


def findings(results: Results, key: str) -> str:
    """All problems or all remarks; the same one of several rounds once."""
    seen: dict[tuple[str, str, str], list[int]] = {}
    for one in results.samples:
        for finding in getattr(one, key):
            # figures differ from round to round
            seen.setdefault((one.broker, one.workload, re.sub(r"\d+", "N", finding)), []).append(one.round)
    return "\n".join(
        f"- {broker}, {workload}: {finding} (round {', '.join(map(str, rounds))})"
        for (broker, workload, finding), rounds in seen.items()
    )


def text(results: Results) -> str:
    """The whole report as Markdown."""
    facts = ", ".join(f"{key} {value}" for key, value in results.machine.items())
    started = [
        f"- {name}: {about['durability']}; ready after {about['start_seconds']:.2f} s, "
        f"{about['resident_mb_after_start']:.0f} MB resident then"
        for name, about in results.brokers.items()
    ]
    parts = [facts, "\n".join(started), throughput_table(results), latency_table(results)]
    if len(results.brokers) > 1:
        parts.append(ratio_table(results))
    if found := findings(results, "problems"):
        parts.append("Problems (!, samples left out of the medians):\n\n" + found)
    if found := findings(results, "remarks"):
        parts.append("Remarks (the figures stand):\n\n" + found)
    return "\n\n".join(part for part in parts if part)


def brief(sample: Sample) -> str:
    """One line while the run goes on."""
    head = f"{sample.round}  {sample.workload:24} {sample.broker:16}"
    if sample.problems:
        return f"{head} PROBLEM {'; '.join(sample.problems)}"
    if sample.latency_ms:
        values = "  ".join(f"{key} {sample.latency_ms[key]:.2f} ms" for key in ("p50", "p99", "p99.9"))
        return f"{head} {values}"
    return (
        f"{head} {_rate(sample.entries_per_second):>9}/s {sample.payload_mb_per_second:7.0f} MB/s "
        f"{sample.broker_cpu_us_per_entry:8.1f} µs CPU {sample.peak_resident_mb:7.0f} MB peak"
    )
