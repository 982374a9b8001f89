"""The lines of a report, as ``pulsar-perf`` 4.0.8 writes them after the name of its class and " - "."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import typer

from magnetar.cli.perf.latencies import PERCENTILES, Latencies

INTERVAL: Final = 10.0
"""Seconds between two lines."""
MEGABIT: Final = 1024 * 1024 / 8
_NAMES: Final = ("med", "95pct", "99pct", "99.9pct", "99.99pct")


def say(text: str) -> None:
    """Print one line with the time."""
    now = datetime.now(UTC)
    typer.echo(f"{now:%Y-%m-%dT%H:%M:%S},{now.microsecond // 1000:03}+0000 INFO  perf - {text}")


def fine(latencies: Latencies, histogram: Any, *, last: bool = False) -> str:
    """Return latencies in milliseconds with their fractions, as of producers; ``last`` adds a percentile."""
    return _latencies(latencies, histogram, "{:7.3f}", "{:7.3f}", last)


def coarse(latencies: Latencies, histogram: Any, *, last: bool = False) -> str:
    """Return latencies in whole milliseconds, as of consumers."""
    return _latencies(latencies, histogram, "{:.0f}", "{:.3f}", last)


def _latencies(latencies: Latencies, histogram: Any, form: str, mean_form: str, last: bool) -> str:
    percentiles = [*PERCENTILES, 99.999] if last else [*PERCENTILES]
    names = [*_NAMES, "99.999pct"] if last else [*_NAMES]
    parts = [
        f"{name}: {form.format(latencies.in_ms(histogram, percentile))}"
        for name, percentile in zip(names, percentiles, strict=True)
    ]
    mean = mean_form.format(latencies.mean_ms(histogram))
    most = form.format(latencies.in_ms(histogram, 100.0))
    return f"Latency: mean: {mean} ms - {' - '.join(parts)} - Max: {most}"
