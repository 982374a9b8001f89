"""docs/command-line.md is what the commands say of themselves."""

from __future__ import annotations

from tools.command_page import command_page

from tests.support.snippets import ROOT


def test_the_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert page == command_page(), "run: python -m tools.command_page > docs/command-line.md"
    for command in ("standalone", "verify", "explain subscription", "jobs audit", "pipeline run", "lake"):
        assert f"`magnetar {command}" in page
