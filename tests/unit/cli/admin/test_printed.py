"""Into a pipe, commands print what Apache Pulsar's ``pulsar-admin`` prints for the same answers."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from magnetar.cli.output.java_json import double, pretty
from tests.support.admin_recorder import run_admin

PRINTED = [
    line.split("\t")
    for line in (Path(__file__).parent / "printed.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(
    ("words", "answers", "code", "text"), PRINTED, ids=[f"{row[0]} {row[1][:20]}" for row in PRINTED]
)
def test_the_text_is_that_of_pulsar_admin(words: str, answers: str, code: str, text: str) -> None:
    ran = run_admin(shlex.split(words), json.loads(answers))
    assert ran.code == int(code), ran.err
    expected = json.loads(text)
    if expected is None:
        assert ran.out == "" and ran.err
    else:
        assert ran.out == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (123456789.5, "1.234567895E8"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-2e-5, "-2.0E-5"),
    ],
)
def test_numbers_are_those_of_java(value: float, text: str) -> None:
    assert double(value) == text


@pytest.mark.parametrize(
    ("flags", "shown", "asked"),
    [
        ("-n 2", ["1:0", "1:4"], 5),
        ("-n 2 -til READ_UNCOMMITTED", ["1:0", "1:2"], 3),
        ("-n 3 -ssm", ["1:0", "1:1", "1:4"], 5),
        ("-n 9 -ssm -til READ_UNCOMMITTED", ["1:0", "1:1", "1:2", "1:3", "1:4"], 6),
    ],
)
def test_a_peek_leaves_out_markers_and_what_is_not_committed(flags: str, shown: list[str], asked: int) -> None:
    """As pulsar-admin does; what is left out is not counted."""
    more: tuple[dict[str, str], ...] = (
        {"X-Pulsar-txn-aborted": "false", "X-Pulsar-txn-uncommitted": "false"}, {"X-Pulsar-marker-type": "21"},
        {"X-Pulsar-txn-aborted": "true"}, {"X-Pulsar-txn-uncommitted": "true"}, {},
    )  # fmt: skip
    answers: list[list[Any]] = [
        [200, "x", {"content-type": "application/octet-stream", "X-Pulsar-Message-ID": f"1:{at}", **each}]
        for at, each in enumerate(more)
    ]
    answers.append([404, '{"reason":"Message not found"}'])
    ran = run_admin(["topics", "peek-messages", "-s", "s", "t", *flags.split()], answers[:])
    assert ran.code == 0, ran.err
    assert re.findall(r"Message ID: (\S+)", ran.out) == shown
    assert len(ran.requests) == asked


def test_json_is_indented_as_jackson_does() -> None:
    assert pretty({"a": [1, "b"], "c": {}, "d": {"e": None}, "f": []}) == (
        '{\n  "a" : [ 1, "b" ],\n  "c" : { },\n  "d" : {\n    "e" : null\n  },\n  "f" : [ ]\n}'
    )


def test_a_refusal_says_what_where_and_the_next_step() -> None:
    ran = run_admin(["tenants", "get", "acme"], [[403, '{"reason":"no permission"}']])
    assert ran.code == 1
    assert "HTTP 403 Forbidden\n" in ran.err and "Reason: no permission" in ran.err
    assert "GET http://recorder:8080/admin/v2/tenants/acme" in ran.err
    assert "magnetar permissions explain ROLE 'GET /admin/v2/tenants/acme'" in ran.err


def test_errors_are_json_where_json_is_wanted() -> None:
    for words in (["--json", "tenants", "get", "acme"], ["tenants", "get", "acme", "--output", "json"]):
        ran = run_admin(words, [[403, '{"reason":"no permission"}']])
        assert (ran.code, ran.out) == (1, "")
        assert json.loads(ran.err) == {
            "error": "HTTP 403 Forbidden",
            "status": 403,
            "reason": "no permission",
            "asked": "GET http://recorder:8080/admin/v2/tenants/acme",
            "next": "magnetar permissions explain ROLE 'GET /admin/v2/tenants/acme'",
        }
    for wrong in (["nope"], ["tenants", "nope"], ["tenants", "get"], ["packages", "upload"]):
        ran = run_admin([*wrong, "--json"])
        assert ran.code == 1 and json.loads(ran.err)["error"].startswith("magnetar admin"), wrong
        assert not run_admin(wrong).err.startswith("{")


def test_json_is_printed_wherever_the_flag_stands() -> None:
    for words in (["--json", "tenants", "list"], ["tenants", "list", "--json"], ["tenants", "list", "--output=json"]):
        assert json.loads(run_admin(words, [[200, '["a"]']]).out) == ["a"]


@pytest.mark.parametrize("group", ["functions", "sources", "sinks", "packages", "functions-worker", "source"])
def test_what_is_not_here_is_refused_by_name(group: str) -> None:
    name = {"packages": "upload", "functions-worker": "get-cluster"}.get(group, "list")
    ran = run_admin([group, name, "--tenant", "t"])
    assert (ran.code, ran.requests) == (1, [])
    assert name in ran.err and "this broker" in ran.err
