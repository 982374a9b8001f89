"""The judges' own parts that need neither Java nor a broker: the list, normalising, comparing, counting."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from tools.official_tools import command_list, normal, verdict
from tools.official_tools.command_list import Line
from tools.official_tools.said import Said


def test_every_line_of_the_list_is_read_and_fills_what_it_names() -> None:
    lines = command_list.read()
    assert len({line.command for line in lines if line.tool == "admin"}) > 486
    known = {"http", "broker", "host", "http_port", "home", "dir", "ledger"}
    for line in lines:
        filled = line.filled(dict.fromkeys(known, "x"))
        assert line.tool in ("admin", "client", "perf")
        assert not [part for part in filled if part.startswith("{") and part.endswith("}") and '"' not in part], line


def test_a_capture_is_kept_for_the_lines_after_it() -> None:
    line = Line(2, "admin", "topics last-message-id t", r"ledger=(\d+)")
    assert line.captured("37:4:-1:0\n") == {"ledger": "37"}
    assert line.captured("nothing") == {}
    assert Line(3, "admin", "topics get {ledger}:0 {x}", "").filled({"ledger": "37"}) == [
        "topics",
        "get",
        "37:0",
        "{x}",
    ]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("on 127.0.0.1:18081\n", "on <address>"),
        ("12:3:-1", "<ledger>:3:-1"),
        ("2026-11-22T23:42:48,014+0000 [main] INFO  org.apache.pulsar.client.cli.Tool - 1 sent", "1 sent"),
        ("2026-11-22T23:42:48,014+0000 [main] INFO  org.apache.pulsar.client.impl.Cnx - open", ""),
        ("Tenant does not exist", "Tenant does not exist"),
    ],
)
def test_words_stay_and_what_differs_in_every_run_goes(raw: str, said: str) -> None:
    assert normal.text(raw) == said


def test_measures_become_types_and_everything_else_stays() -> None:
    assert normal.output('{"msgRateIn": 1.5, "type": "Shared", "storageSize": 12, "count": 3}') == {
        "msgRateIn": "<float>",
        "type": "Shared",
        "storageSize": "<int>",
        "count": 3,
    }


def answers(*said: Said) -> dict[int, Said]:
    return dict(enumerate(said, start=2))


def test_differences_are_found_at_exit_output_and_error_and_counted_by_command() -> None:
    lines = [Line(2, "admin", "topics stats t", ""), Line(3, "admin", "tenants list", ""), Line(4, "admin", "a b", "")]
    theirs = answers(Said(0, '{"a": {"b": 1}}', ""), Said(0, "x\n", ""), Said(1, "", "no"))
    ours = answers(Said(0, '{"a": {"c": 1}}', ""), Said(0, "x\n", ""), Said(0, "", "no"))
    known = [verdict.Accepted("magnetar", "admin a *", "exit", "because")]
    found = verdict.compare("magnetar", lines, theirs, ours, known)
    assert [(each.line.number, each.place, each.reason) for each in found] == [
        (2, "out/a/b", ""),
        (2, "out/a/c", ""),
        (4, "exit", "because"),
    ]
    assert verdict.counts(lines, found) == {"same": 1, "differs as listed": 1, "to mend": 1}
    assert verdict.compare("ours", lines, theirs, ours, known)[-1].reason == ""


def test_every_accepted_difference_has_a_reason_and_speaks_of_a_line_of_the_list() -> None:
    lines = [f"{line.tool} {line.arguments}" for line in command_list.read()]
    for each in verdict.accepted():
        assert len(each.reason) > 10, each
        assert any(fnmatchcase(line, each.arguments) for line in lines), each
