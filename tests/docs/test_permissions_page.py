"""docs/permissions.md is what the permission table says."""

from __future__ import annotations

from pathlib import Path

from tools.permissions_page import permissions_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "permissions.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == permissions_page(), "run: python -m tools.permissions_page > docs/permissions.md"
