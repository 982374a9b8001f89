"""The demo's parts on a slice of its data; and what it says when a flight is missing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from examples.demo import flights, run
from rich.console import Console

from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize("missing", [0, 1])
def test_the_result_is_right_or_reported_as_wrong(spark: Any, broker: LiveBroker, tmp_path: Path, missing: int) -> None:
    table = flights.load().slice(0, 3_000)
    namespace = "persistent://public/default"
    stage = run.DemoRun(broker.url, f"{namespace}/flights-{missing}", f"{namespace}/delays-{missing}", tmp_path)
    with Console(record=True, file=io.StringIO(), width=200) as console:
        steps = run.Steps(console)
        with steps.step("publishing") as task:
            sent = run.publish(stage, flights.messages(table.slice(missing)), steps, task)
        with steps.step("streaming") as task:
            assert run.stream(spark, stage, steps, task) == sent == 3_000 - missing
        good = run.show(console, flights.expected(table), run.read_back(spark, stage))
    said = console.export_text()
    assert good == (not missing)
    assert said.count("DIFFERENT" if missing else "equal  ") == 2
