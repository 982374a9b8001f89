"""The count of settings: nothing is wrong, and what no test sees may only become less."""

from __future__ import annotations

import pytest
from tools.coverage import settings


def test_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Every setting is in one of the four groups, each with its number."""
    assert settings.main() == 0
    assert "effective" in capsys.readouterr().out
