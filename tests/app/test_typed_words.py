"""Command lines as people type them reach the command whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from magnetar.app.typed_words import passed_whole

_MAIN = "from magnetar.app.main import main; main()"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["backup", "--admin-url", "http://127.0.0.1:1", "--", "-x"], "does not answer"),
        (["produce", "-f", "/not-there", "--", "-t"], "--files: '/not-there' cannot be read"),
        (["lake", "history", "--", "--not-there"], "--not-there: there is no such directory"),
    ],
)
def test_names_may_begin_with_a_dash_after_two(words: list[str], said: str) -> None:
    """The group above the command took "--" away: "No such option: -x"."""
    done = subprocess.run([sys.executable, "-c", _MAIN, *words], capture_output=True, text=True, check=False)
    assert said in done.stderr


def test_only_commands_with_a_parser_of_their_own_get_another() -> None:
    assert passed_whole(["a", "-m", "--", "--"], {"a"}) == ["a", "-m", "--", "--", "--"]
    for words in (["b", "--", "-x"], ["a", "x"], []):
        assert passed_whole(words, {"a"}) == words
