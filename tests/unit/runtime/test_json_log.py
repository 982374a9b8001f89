"""logFormat=json: one object for each line, with what is known of connection, topic, subscription and role."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import magnetar.broker
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


def test_no_control_character_stands_raw_in_a_line(stream: io.StringIO) -> None:
    name = "a\x1b[2J\x00\x7f\x85\x9b\u2028\u202eb Grüße"
    logging.getLogger("magnetar.x").warning("%s", name, extra={"topic": name})
    line = stream.getvalue().removesuffix("\n")
    assert not set(name) - set("a[2Jb Grüße") & set(line)
    assert json.loads(line)["message"] == json.loads(line)["topic"] == name
    assert "Grüße" in line


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


NAMES = {"fqn": "topic", "address": "connection"}
"""What an argument of a line ends with, and the field that the line then has."""


def lines_of_the_broker() -> Iterator[tuple[str, ast.Call]]:
    """The calls that log, with the places where they stand."""
    for path in sorted(Path(magnetar.broker.__path__[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called == "_say" or re.search(r"(log|complaints)\.(debug|info|warning|error|exception)$", called):
                    yield f"{path.name}:{node.lineno}", node


def test_lines_that_name_a_topic_or_a_connection_have_it_as_a_field() -> None:
    found, without = 0, []
    for place, call in lines_of_the_broker():
        said = [field for argument in call.args for end, field in NAMES.items() if ast.unparse(argument).endswith(end)]
        extra = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "extra"]
        found += bool(said)
        without += [place for field in said if not extra or not (field in extra[0] or "known" in extra[0])]
    assert found > 10
    assert not without
