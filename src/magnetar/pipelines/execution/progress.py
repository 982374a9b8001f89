"""The display of a running pipeline: a table on a terminal, one line per micro-batch elsewhere.

Counts come from the manifests of this run, lag from Spark's progress: the entries between the end of the last
micro-batch and the end of the topics. Entries of a ledger that is not the last one cannot be counted from places, so
such a lag is given as "more than".
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from magnetar.client.read_position import START, ReadPosition
from magnetar.pipelines.declaration.model import DEAD_LETTERS, Pipeline, TopicSource, Trigger, target_of
from magnetar.pipelines.state.manifest import Manifest
from magnetar.runtime.clock import steady_seconds
from magnetar.spark.offset_json import from_json

_WINDOW: Final = 30.0
"""Rates are averages over so many seconds."""


def lag(end: Mapping[str, ReadPosition], latest: Mapping[str, ReadPosition]) -> tuple[int, bool]:
    """Return the number of entries not processed yet, and whether there are certainly more."""
    entries, more = 0, False
    for topic, last in latest.items():
        at = end.get(topic, START)
        if at >= last:
            continue
        if at.ledger == last.ledger:
            entries += last.entry - at.entry + (1 if last.batch else 0)
        else:
            entries += last.entry
            more = True
    return entries, more


def lag_text(end: Mapping[str, ReadPosition], latest: Mapping[str, ReadPosition]) -> str:
    """Return the lag as text."""
    entries, more = lag(end, latest)
    return f"more than {entries:,} entries" if more else f"{entries:,} entries" if entries else "none"


def places_of(text: Any) -> dict[str, ReadPosition]:
    """Parse an offset in Spark's progress: JSON, perhaps as a string; null before the first one and when repeated."""
    found = json.loads(text) if isinstance(text, str) else text
    return from_json(found) if isinstance(found, dict) else {}


def outline(pipeline: Pipeline) -> list[str]:
    """Return lines that say what will run: sources, sinks and checkpoint."""
    lines = [f"pipeline {pipeline.name} ({pipeline.file}) at {pipeline.service_url}"]
    for source in pipeline.sources:
        if isinstance(source, TopicSource):
            given = (source.options.get(key) for key in ("topic", "topics", "topicsPattern", "assign"))
            read = next((one for one in given if one is not None), "")
            lines.append(f"  source {source.name}: {read}, subscription {source.subscription}")
        else:
            lines.append(f"  source {source.name}: {source.format} {source.path or ''}".rstrip())
    for sink in pipeline.sinks:
        lines.append(f"  sink {sink.name}: {sink.source} to {target_of(sink)}")
    if pipeline.topic_sinks:
        lines.append(
            "  (a sink's topic keeps what a subscription or its retention holds, and goes when it is idle without them)"
        )
    if pipeline.dead_letter is not None:
        lines.append(f"  dead letters: {pipeline.dead_letter}")
    every = f" {pipeline.interval:g} s" if pipeline.trigger is Trigger.INTERVAL else ""
    lines.append(f"  checkpoint {pipeline.checkpoint}, trigger {pipeline.trigger.value}{every}")
    return lines


class ProgressView:
    """The display, updated by micro-batches (`batch_done`, in their thread) and the query's progress (`progressed`)."""

    def __init__(self, pipeline: Pipeline, console: Console | None = None) -> None:
        self._pipeline = pipeline
        self._console = console or Console(file=sys.stdout)
        self._lock = threading.Lock()
        self._recent: list[tuple[float, Manifest]] = []
        self._totals: dict[str, int] = {}
        self._lags: dict[str, str] = {}
        self._last: Manifest | None = None
        self._live: Live | None = None
        self.batches = 0
        self.rows_in = 0
        self.dead = 0
        self.dropped = 0
        self.errors = 0

    def __enter__(self) -> ProgressView:
        if self._console.is_terminal:
            self._live = Live(console=self._console, get_renderable=self.table, refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Print one line, above the table if there is one."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def batch_done(self, manifest: Manifest) -> None:
        """Show that a micro-batch is done."""
        with self._lock:
            now = steady_seconds()
            self._recent = [one for one in self._recent if now - one[0] < _WINDOW] + [(now, manifest)]
            self._last = manifest
            self.batches += 1
            self.rows_in += manifest.rows_in
            self.dead += manifest.dead
            self.dropped += manifest.dropped
            for name, source in manifest.sources.items():
                self._totals[name] = self._totals.get(name, 0) + sum(source.rows.values())
            for name, output in manifest.outputs.items():
                self._totals[f">{name}"] = self._totals.get(f">{name}", 0) + output.rows
        if self._live is None:
            self.say(self.line(manifest))

    def progressed(self, progress: Any, order: Sequence[str]) -> None:
        """Show Spark's latest progress."""
        found = {}
        for name, source in zip(order, progress.sources, strict=False):
            latest = places_of(source.latestOffset)
            if latest:
                found[name] = lag_text(places_of(source.endOffset), latest)
        with self._lock:
            self._lags.update(found)

    def line(self, manifest: Manifest) -> str:
        """Return the line of one micro-batch."""
        seconds = (manifest.times["ended_ms"] - manifest.times["began_ms"]) / 1000
        outputs = ", ".join(
            f"{output.rows:,} to {name}"
            for name, output in manifest.outputs.items()
            if output.rows or name != DEAD_LETTERS
        )
        dropped = f", {manifest.dropped:,} dropped" if manifest.dropped else ""
        return f"batch {manifest.batch}: {manifest.rows_in:,} rows in {seconds:.1f} s: {outputs}{dropped}"

    def table(self) -> Table:
        """Return the table."""
        with self._lock:
            table = Table(title=f"pipeline {self._pipeline.name}", title_justify="left")
            for title in ("", "name", "rows/s", "rows", "lag"):
                table.add_column(title, justify="left" if title in ("", "name") else "right")
            for source in self._pipeline.topic_sources:
                rate = self._rate(lambda one, name=source.name: sum(one.sources[name].rows.values()))
                total = self._totals.get(source.name, 0)
                table.add_row("source", source.name, f"{rate:,.0f}", f"{total:,}", self._lags.get(source.name, ""))
            names = [sink.name for sink in self._pipeline.sinks]
            for name in [*names, *([DEAD_LETTERS] if self._pipeline.dead_letter else [])]:
                rate = self._rate(lambda one, name=name: one.outputs[name].rows)
                table.add_row("sink", name, f"{rate:,.0f}", f"{self._totals.get('>' + name, 0):,}", "")
            last = self._last
            times = f"{last.times['ended_ms'] - last.times['began_ms']:,} ms" if last is not None else "-"
            table.caption = (
                f"batch {last.batch if last is not None else '-'} took {times}; {self.batches:,} batches, "
                f"{self.dead:,} dead letters, {self.dropped:,} dropped, {self.errors:,} errors"
            )
            return table

    def _rate(self, count: Any) -> float:
        if not self._recent:
            return 0.0
        first = self._recent[0]
        began = first[0] - (first[1].times["ended_ms"] - first[1].times["began_ms"]) / 1000
        rows: int = sum(count(one) for _, one in self._recent)
        return rows / max(steady_seconds() - began, 0.001)
