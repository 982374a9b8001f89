"""A newline in a name that a user, a script or another client chose begins no line of an error: none can be forged."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.aio import Client
from tests.support.live_broker import free_port, live_broker

_FORGED = "a\nmagnetar: all is lost\x1b[31m"
_MAIN = "from magnetar.app.main import main; main()"
_SOURCES = Path(__file__).parents[2] / "src" / "magnetar"


def _run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _MAIN, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        cwd=cwd,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["standalone", "--conf", f"/nope/{_FORGED}"],
        ["standalone", "--set", f"brokerServicePort={_FORGED}"],
        ["verify", f"/nope/{_FORGED}"],
        ["rescue", "metadata", f"/nope/{_FORGED}"],
        ["restore", f"/nope/{_FORGED}", "--data", "new"],
        ["contexts", "use", _FORGED],
        ["doctor", "--only", _FORGED],
        ["admin", "topics", "stats", "t", f"--{_FORGED}"],
        ["lake", "history", f"/nope/{_FORGED}"],
        ["pipeline", "check", f"/nope/{_FORGED}"],
        ["produce", "t", f"--{_FORGED}"],
        ["backup", "--data", f"/nope/{_FORGED}", "to"],
        [_FORGED],
    ],
    ids=lambda words: " ".join(words).partition("\n")[0].removesuffix("a"),
)
def test_no_line_of_an_error_is_forged(words: list[str], tmp_path: Path) -> None:
    done = _run(*words, cwd=tmp_path)
    assert done.returncode not in (0, -1)
    assert "all is lost" in done.stderr
    assert not any(line.startswith("magnetar: all is lost") for line in done.stderr.splitlines())
    assert "\x1b" not in done.stderr


def test_a_consumers_name_is_no_finding(tmp_path: Path) -> None:
    """`explain` printed it as it is: its second line could be another finding."""
    port = free_port()
    with live_broker(tmp_path, webServicePort=port) as broker:

        async def ask() -> subprocess.CompletedProcess[str]:
            async with Client(broker.url) as client:
                await client.subscribe("t", "s", consumer_name=f"c\n* {_FORGED}")
                words = ("explain", "subscription", "t", "s", "--admin-url", f"http://127.0.0.1:{port}")
                return await asyncio.to_thread(_run, *words)

        done = asyncio.run(ask())
    assert "consumer c\\n* a\\nmagnetar: all is lost\\x1b[31m: " in done.stdout, done
    assert "\x1b" not in done.stdout


def test_what_an_interruption_leaves_is_said_in_one_place() -> None:
    """By `say_interrupted`; it stood in five commands."""
    found = [path.name for path in _SOURCES.rglob("*.py") if '"interrupted; ' in path.read_text()]
    assert found == ["command_line.py"]


def test_errors_are_printed_in_one_place() -> None:
    """By `complain`, which lets no name begin a line."""
    found = [
        f"{path.relative_to(_SOURCES)}: {line.strip()}"
        for path in _SOURCES.rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"""(print|echo|write)\(f["']magnetar: """, line) and "strerror" not in line
    ]
    assert found == []
