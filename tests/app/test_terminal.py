"""What others wrote does nothing to a terminal, and goes into files and pipes as it is."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.runtime.harmless_text import json_escaped
from tests.support.live_broker import live_broker

_EVIL = "a\x1b]0;evil\x07\x1b[31mred\x9b2J\u202e"
_MAIN = "from magnetar.app.main import main; main()"


def _on_terminal(*words: str) -> bytes:
    """Return what a terminal gets of a command, from both its streams."""
    ours, its = pty.openpty()
    program = [sys.executable, "-c", _MAIN, *words]
    done = subprocess.Popen(program, stdout=its, stderr=its, stdin=its, env={**os.environ, "PYTHONUTF8": "1"})
    os.close(its)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:
        pass  # how a terminal's end is told
    os.close(ours)
    done.wait(timeout=60)
    return said


@pytest.mark.parametrize(
    "words",
    [
        ["verify", _EVIL],
        ["doctor", "--only", _EVIL],
        ["produce", "t", "-m", "x", "-vs", _EVIL],
        ["produce", "t", "-m", "x", "--context", _EVIL],
        ["pipeline", "check", _EVIL],
    ],
    ids=lambda words: " ".join(words[:-1]),
)
def test_names_in_errors_do_nothing_to_a_terminal(words: list[str]) -> None:
    said = _on_terminal(*words).decode()
    assert "\\x1b]0;evil\\x07\\x1b[31mred" in said
    assert not set(said) & set("\x1b\x07\x9b\u202e")


def test_messages_do_nothing_to_a_terminal_and_are_whole_in_a_file(tmp_path: Path) -> None:
    """A producer could set a terminal's title, clear it or write over it; a file lacked the sequences of colours."""
    with live_broker(tmp_path) as broker:
        words = ["--url", broker.url]
        sent = ["-k", _EVIL, "-m", _EVIL, "-p", f"{_EVIL}={_EVIL}"]
        subprocess.run([sys.executable, "-c", _MAIN, "produce", "t", *sent, *words], check=True, capture_output=True)
        made = ["read", "t", "-m", "earliest", *words]
        piped = subprocess.run([sys.executable, "-c", _MAIN, *made], check=True, capture_output=True).stdout
        assert f"key:[{_EVIL}], properties:[{_EVIL}={_EVIL}], content:{_EVIL}\n".encode() in piped
        said = _on_terminal(*made)
        assert b"\x1b[2m----- got message -----\x1b[0m" in said and said.count(b"\x1b") == 2
        assert b"key:[a\\x1b]0;evil" in said and not set(said.decode()) & set("\x07\x9b\u202e")
        line = next(line for line in _on_terminal(*made, "--json").decode().splitlines() if line.startswith("{"))
        assert not set(line) & set("\x1b\x07\x9b\u202e") and json.loads(line)["content"] == _EVIL


def test_json_stays_json() -> None:
    text = json.dumps({_EVIL: _EVIL}, ensure_ascii=False)
    assert json.loads(json_escaped(text)) == {_EVIL: _EVIL}
    assert not set(json_escaped(text)) & set("\x9b\u202e")
