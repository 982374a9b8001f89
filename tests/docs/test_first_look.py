"""README.md and the second step of docs/tutorial.md, every line as a newcomer types it, at a broker on free ports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_broker import LiveBroker, free_port
from tests.support.snippets import ROOT, Snippet, commands, snippets


class Newcomer:
    """Somebody with a terminal and a broker, whose ports only ``client.conf`` knows."""

    def __init__(self, directory: Path, broker: LiveBroker, web_port: int) -> None:
        self._directory = directory
        (directory / "client.conf").write_text(
            f"brokerServiceUrl={broker.url}\nwebServiceUrl=http://127.0.0.1:{web_port}\n"
        )

    def types(self, snippet: Snippet) -> list[str]:
        """Return what each command prints; all succeed."""
        return [self._run(words) for words in commands(snippet) if words[0] != "export"]

    def _run(self, words: list[str]) -> str:
        assert words[0] == "magnetar"
        done = subprocess.run(
            [sys.executable, "-m", "magnetar.app.main", *words[1:]],
            cwd=self._directory,
            env={
                **os.environ,
                "PULSAR_CLIENT_CONF": str(self._directory / "client.conf"),
                "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        # what doctor finds is this machine's business
        assert done.returncode == 0 or words[1] == "doctor", (words, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    port = free_port()
    broker = LiveBroker(tmp_path, webServicePort=port)
    broker.start()
    try:
        yield Newcomer(tmp_path, broker, port)
    finally:
        broker.end()


def of_page(page: str, *words: str) -> list[Snippet]:
    """The shell snippets of a page with one of these texts."""
    found = [one for one in snippets() if one.file == page and one.language == "sh"]
    return [one for one in found if any(word in one.text for word in words)]


def test_the_readme(newcomer: Newcomer) -> None:
    (look,) = of_page("README.md", "magnetar produce")
    sent, seen, again, topics, explained, peeked, _, looked = newcomer.types(look)
    assert sent == "2 messages successfully produced\n" and again.startswith("1 ")
    assert "key:[customer-7]" in seen and "content:2 pears" in seen
    assert topics == "persistent://public/default/orders\n"
    assert "no consumer is connected" in explained
    assert "not an order" in peeked
    assert "python" in looked


def test_the_tutorial(newcomer: Newcomer) -> None:
    said = [line for one in of_page("docs/tutorial.md", "parcels") for line in newcomer.types(one)]
    assert len(said) == 10
    assert "content:10 apples" in said[1] and "2 messages successfully consumed" in said[1]
    assert "backlog 2 entries" in said[4] and "no consumer is connected" in said[4]
    assert "not a parcel" in said[5]
    assert "content:3 plums" in said[7] and "not a parcel" not in said[7]
    assert "content:not a parcel" in said[9] and "4 messages successfully consumed" in said[9]
