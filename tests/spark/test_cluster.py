"""A standalone cluster of two workers on loopback: executors are processes of their own, in other directories."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.spark.cluster import standalone_cluster
from tests.spark.on_cluster import FLIGHTS
from tests.support.live_broker import LiveBroker

pytestmark = [pytest.mark.spark, pytest.mark.drivers]
_PATIENCE = 240


def test_the_demo_and_a_stream_run_on_two_workers(broker: LiveBroker, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        arguments = ["--master", master, "--url", broker.url, "--directory", str(tmp_path)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.on_cluster", *arguments],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            cwd=Path(__file__).parents[2],
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[-4:] == [
        "demo True", f"copy {FLIGHTS} {FLIGHTS}", "processes 4, with the archive 4", "executors 2"
    ]  # fmt: skip
