"""Tables for people, and what a stranger's name may do to their terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from typing_extensions import override

from magnetar.cli.output.figures import age_in_words, bar, count_in_words, rate_in_words, size_in_words
from magnetar.cli.output.printer import Printer
from magnetar.cli.output.terminal import terminal_of
from magnetar.runtime.harmless_text import escaped


class FakeTerminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    @override
    def isatty(self) -> bool:
        return True


def _shown(value: Any, kind: str = "json") -> str:
    stream = FakeTerminal()
    Printer(None, stream).show(kind, value, "topics list")
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("value", [["\x1b[2Jgone", "\u202eevil"], {"\x1b]0;title\x07": "\x9b31m"}, "\x1b[31mred"])
def test_no_name_acts_on_a_terminal(value: Any) -> None:
    shown = _shown(value)
    assert not any(one in shown for one in "\x1b\x07\x9b\u202e")
    assert "\\x1b" in shown


@pytest.mark.parametrize("form", ["plain", "table"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("lines", ["a\nb", "c"]),
        ("map", {"a\nb": ["x"], "c": "y\nz"}),
        ("raw", "a\nb"),
        ("word", "a\nb"),
        ("json", "a\nb"),
    ],
)
def test_a_name_begins_no_line(form: Any, kind: str, value: Any) -> None:
    """A program that reads names line by line took one for two, of which a stranger chose the second."""
    stream = io.StringIO()
    Printer(form, stream).show(kind, value, "topics subscriptions")
    shown = stream.getvalue()
    assert "a\\nb" in shown
    assert not any(line.lstrip().startswith(("b", "z")) for line in shown.splitlines())


@pytest.mark.parametrize(("form", "kind"), [("json", "lines"), ("plain", "jackson"), ("plain", "json"), (None, "gson")])
def test_json_stays_json_on_a_terminal(form: Any, kind: str) -> None:
    r"""It had ``\x9b`` in its texts, which is none."""
    stream, value = FakeTerminal(), ["\x9b31m", "\u202eevil", "a\nb"]
    Printer(form or "plain", stream).show(kind, value if kind != "gson" else [value], "topics list")
    assert json.loads(stream.getvalue()) == value
    assert not any(one in stream.getvalue() for one in "\x9b\u202e")


def test_a_name_is_no_markup() -> None:
    assert "[bold]" in _shown(["[bold]x"])


def test_statistics_are_tables_with_bars() -> None:
    subscription = {"msgBacklog": 20_000, "type": "Shared", "consumers": [{}], "msgRateOut": 3.0}
    shown = _shown({"msgRateIn": 12.0, "storageSize": 3 << 20, "subscriptions": {"billing": subscription}})
    assert "3.0 MiB" in shown and "billing" in shown and "20k" in shown and "█" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["20", "40", "200"])
def test_narrow_terminals_lose_nothing(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = _shown(["persistent://acme/orders/payments-of-the-year"])
    assert "".join(shown.split()).startswith("namepersistent://acme/orders/payments-of-the-year")
    assert max(map(len, shown.splitlines())) <= int(columns)


def test_no_color_is_heeded() -> None:
    assert not terminal_of(FakeTerminal(), {"NO_COLOR": "1"}).color
    assert terminal_of(FakeTerminal(), {"TERM": "xterm"}).color
    assert not terminal_of(io.StringIO(), {}).color


def test_figures() -> None:
    assert (size_in_words(1536), size_in_words(-1), size_in_words(0)) == ("1.5 KiB", "-", "0 B")
    assert (count_in_words(950), count_in_words(12_300)) == ("950", "12.3k")
    assert (rate_in_words(120), rate_in_words(2048, "B")) == ("120 msg/s", "2.0 KiB/s")
    assert (age_in_words(0), age_in_words(93_784), age_in_words(-1)) == ("0s", "1d 2h", "-")
    assert (bar(0, 5), bar(5, 5, 2), bar(0.001, 5)) == ("", "██", "▏")
    assert escaped("a\tb\nc\x7f") == "a\tb\nc\\x7f"


def test_a_closed_pipe_ends_quietly() -> None:
    """A reader that goes away ends the output quietly, as with ``magnetar admin --help | head -0``."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "import sys; from magnetar.app.main import main; main()", "admin", "--help"]
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=30, check=False)
    assert done.stderr == b""
    assert done.returncode == 141
