"""docs/metrics.md is what the families say."""

from __future__ import annotations

from pathlib import Path

from tools.metrics_page import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m tools.metrics_page > docs/metrics.md"
