"""Each example of examples/pipelines on a slice of its data; and what it says when its data are not all there."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from examples.pipelines import change_capture, late_data, sessions, table_view, weather_join
from examples.pipelines.workplace import Outcome, Workplace, differences, show
from rich.console import Console

from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = 1_100


@pytest.mark.parametrize(
    ("example", "said"),
    [
        (late_data.example, "late flights"),
        (weather_join.example, "without an observation"),
        (change_capture.example, "came again: the same rows"),
        (table_view.example, "without an airline"),
        (sessions.example, "sessions that are over"),
    ],
    ids=["late_data", "weather_join", "change_capture", "table_view", "sessions"],
)
def test_an_example_keeps_its_promise(
    spark: Any, broker: LiveBroker, tmp_path: Path, example: Callable[[Workplace, int], Outcome], said: str
) -> None:
    outcome = example(Workplace.at(spark, broker.url, tmp_path), ROWS)
    with Console(record=True, file=io.StringIO(), width=200) as console:
        good = show(console, outcome)
    text = console.export_text()
    assert good, text
    assert said in text and "DIFFERENT" not in text
    assert outcome.summary.height > 1


def test_a_difference_is_found_and_named() -> None:
    right = pl.DataFrame({"key": ["a", "b", "b"], "count": [1, 2, 2]})
    assert not differences(right.sort("count", descending=True), right)
    assert not differences(right.with_columns(pl.col("count").cast(pl.Int32)), right)
    once = differences(right.unique(), right)
    assert [text.partition(",")[0] for text in once] == ["1 of 2 are missing", "1 of 2 are not expected"]
    assert differences(right.head(1), right) == ["1 of 2 are missing, as {'key': 'b', 'count': 2, 'len': 2}"]
    outcome = Outcome("t", right, {"rows": differences(right.head(1), right)})
    with Console(record=True, file=io.StringIO(), width=200) as console:
        assert not show(console, outcome)
    assert "DIFFERENT  rows: 1 of 2 are missing" in console.export_text()
