"""logFormat=json: one object for each line, with what is known of connection, topic, subscription and role."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from magnetar.runtime.log import RateLimitedLog, set_up
from magnetar.runtime.log_counts import counted


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    written = io.StringIO()
    set_up(stream=written, as_json=True)
    yield written
    root.handlers[:] = before
    root.setLevel(level)


def test_each_line_is_an_object(stream: io.StringIO) -> None:
    log = logging.getLogger("magnetar.broker.clients")
    RateLimitedLog(log).warning("kind", "it said\n%s", "x", extra={"connection": "/1.2.3.4:5", "role": "r"})
    try:
        raise ValueError("y")
    except ValueError:
        log.exception("failed", extra={"topic": "persistent://a/b/t", "subscription": ""})
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "WARN", "logger": "broker.clients", "message": "it said\nx", "connection": "/1.2.3.4:5", "role": "r",
    }  # fmt: skip
    assert (second["topic"], "subscription" in second) == ("persistent://a/b/t", False)
    assert second["trace"].endswith("ValueError: y")


def test_lines_are_counted_by_their_level(stream: io.StringIO) -> None:
    before = dict(counted().by_level)
    logging.getLogger("magnetar.x").error("one")
    logging.getLogger("magnetar.x").warning("two")
    after = counted().by_level
    assert {level: after[level] - before[level] for level in after} == {
        "debug": 0, "info": 0, "warn": 1, "error": 1, "fatal": 0,
    }  # fmt: skip


def test_the_setting_of_the_broker(tmp_path: Path) -> None:
    """A broker that cannot start says so; what it logs before is JSON already."""
    command = [sys.executable, "-m", "magnetar.app.main", "config", "--set", "logFormat=json", "--changed"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=tmp_path, check=True).stdout
    assert "logFormat" in said
