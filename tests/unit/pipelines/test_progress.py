"""The display of a running pipeline."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from magnetar.client.read_position import ReadPosition
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.execution.progress import ProgressView, lag_text, outline, places_of
from tests.unit.pipelines.example import TEXT
from tests.unit.pipelines.histories import TOPIC, history


@pytest.mark.parametrize(
    ("end", "latest", "text"),
    [
        ((3, 5), (3, 5), "none"),
        ((3, 5), (3, 9), "4 entries"),
        ((3, 5, 2), (3, 6), "1 entries"),
        ((3, 5), (4, 2), "more than 2 entries"),
    ],
)
def test_lag_counts_entries_and_says_when_there_are_more(
    end: tuple[int, ...], latest: tuple[int, ...], text: str
) -> None:
    assert lag_text({TOPIC: ReadPosition(*end)}, {TOPIC: ReadPosition(*latest)}) == text


def test_offsets_of_progress_are_parsed() -> None:
    assert places_of('{"v": 1, "p": {"t": "1:2:3"}}') == {"t": ReadPosition(1, 2, 3)}
    assert places_of("null") == places_of(None) == {}


def test_lines_elsewhere_and_a_table_on_a_terminal() -> None:
    pipeline = parse(TEXT, "f.yaml")
    for terminal in (False, True):
        console = Console(file=io.StringIO(), force_terminal=terminal, record=True, width=120)
        with ProgressView(pipeline, console) as watch:
            for one in history(2):
                watch.batch_done(one)
            offset = {"v": 1, "p": {TOPIC: "1:20:0"}}
            latest = {"v": 1, "p": {TOPIC: "1:25:0"}}
            watch.progressed(
                SimpleNamespace(sources=[SimpleNamespace(endOffset=offset, latestOffset=latest)]), ["flights"]
            )
            table = Console(file=io.StringIO(), record=True, width=120)
            table.print(watch.table())
            shown = " ".join(table.export_text().split())
        assert (watch.batches, watch.rows_in, watch.dead, watch.dropped) == (2, 20, 2, 2)
        assert "5 entries" in shown and "dead-letters" in shown and "2 batches, 2 dead letters, 2 dropped" in shown
        said = console.export_text()
        assert ("batch 1: 10 rows in 0.0 s: 8 to out, 1 to dead-letters, 1 dropped" in said) == (not terminal)
        console.file.close()


def test_what_runs_is_said_before_anything_has() -> None:
    lines = outline(parse(TEXT, "f.yaml"))
    assert lines[0] == "pipeline small (f.yaml) at pulsar://localhost:6650"
    assert lines[1:] == [
        "  source flights: flights, subscription small.flights",
        f"  source airports: csv {Path('airports.csv').resolve()}",
        "  sink out: late to late",
        "  (a sink's topic keeps what a subscription or its retention holds, and goes when it is idle without them)",
        "  dead letters: persistent://public/default/dead",
        f"  checkpoint {Path('work').resolve()}, trigger continuous",
    ]
