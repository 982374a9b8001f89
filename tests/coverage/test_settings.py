"""The count of settings: nothing is wrong, and what no test sees may only become less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.coverage import proven_settings, settings

from magnetar.config.configuration import pulsar_settings


def test_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Every setting is in one of the four groups, each with its number."""
    assert settings.main() == 0
    assert "effective" in capsys.readouterr().out


def test_the_page_calls_those_effective_that_were_seen_to_be() -> None:
    """The tables of docs/settings.md before the refused ones, without magnetar's own names."""
    page = (Path(settings.ROOT) / "docs" / "settings.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page.partition("## Refused until they work")[0], re.MULTILINE)
    assert {name for name in listed if name in pulsar_settings()} == set(proven_settings.rows())
