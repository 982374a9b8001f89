"""The page of ``magnetar admin`` is what its tables say."""

from __future__ import annotations

from pathlib import Path

from tools.admin_page import admin_page

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_admin_commands_is_made_of_the_tables() -> None:
    page = (ROOT / "docs/admin-commands.md").read_text()
    assert page == admin_page(), "python -m tools.admin_page > docs/admin-commands.md"
