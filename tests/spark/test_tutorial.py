"""docs/tutorial.md from its first Python to its last line, as a reader tries it, against a real broker."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live_broker import LiveBroker, free_port
from tests.support.snippets import ROOT, Snippet, commands, snippets

pytestmark = [pytest.mark.spark, pytest.mark.drivers]
_SECONDS_MAX = 240


class _Reader:
    """Somebody with a terminal in a directory of their own."""

    def __init__(self, directory: Path, broker: LiveBroker, admin_url: str) -> None:
        self._directory, self._url = directory, broker.url
        (directory / "client.conf").write_text(f"brokerServiceUrl={broker.url}\nwebServiceUrl={admin_url}\n")
        self.said: list[str] = []

    def do(self, snippet: Snippet) -> None:
        text = snippet.at(self._url, self._directory)
        match snippet.language:
            case "python":
                self._run(sys.executable, "-c", text)
            case "yaml":
                (self._directory / "orders.yaml").write_text(text)
            case "sh":
                for words in commands(snippet):
                    if words[0] == "magnetar":
                        self._run(sys.executable, "-m", "magnetar.app.main", *words[1:])
            case _:
                raise AssertionError(f"{snippet.where}: there is no way to try {snippet.language}")

    def _run(self, *command: str) -> None:
        environment = {
            **os.environ,
            "PULSAR_CLIENT_CONF": str(self._directory / "client.conf"),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))),
        }
        done = subprocess.run(
            command,
            cwd=self._directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.said.append(done.stdout)


def test_every_step(tmp_path: Path) -> None:
    port = free_port()
    tutorial = [one for one in snippets() if one.file == "docs/tutorial.md"]
    made = next(words for words in commands(tutorial[0]) if words[0] == "make")
    options = shlex.split(made[2].removeprefix("ARGS="))
    settings = dict(one.split("=", 1) for word, one in itertools.pairwise(options) if word == "--set")
    broker = LiveBroker(tmp_path, webServicePort=port, **settings)
    broker.start()
    try:
        reader = _Reader(tmp_path, broker, f"http://127.0.0.1:{port}")
        for snippet in tutorial:
            if "parcels" not in snippet.text:  # tests/docs/test_first_look.py does those
                reader.do(snippet)
    finally:
        broker.end()
    _, explained, _, _, checked, _, verified, result = reader.said
    assert "61 entries wait and no consumer is connected" in explained
    assert "is valid" in checked
    assert "proven: nothing skipped, nothing repeated, nothing changed" in verified
    large = sum(250 * (number % 9) >= 1000 for number in range(100))
    assert f"{large} large orders; not understood: b'not an order' decode" in result
