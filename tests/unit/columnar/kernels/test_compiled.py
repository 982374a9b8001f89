"""Where compiled code is kept: in a place that only the user can write, and that no other sources share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magnetar.columnar.kernels import compiled
from magnetar.columnar.kernels.compiled import cache_directory


@pytest.fixture
def package(tmp_path: Path) -> Path:
    found = tmp_path / "package"
    found.mkdir()
    (found / "one.py").write_text("1")
    return found


def test_beside_the_sources_if_that_can_be_written(package: Path, tmp_path: Path) -> None:
    assert cache_directory(package, tmp_path).parent == package / "__pycache__"
    assert cache_directory(package, tmp_path, "/chosen").parent == Path("/chosen")


def test_other_sources_another_place(package: Path, tmp_path: Path) -> None:
    """Numba looks at one file only, and a kernel holds those that it calls."""
    before = cache_directory(package, tmp_path)
    assert cache_directory(package, tmp_path) == before
    (package / "room").mkdir()
    (package / "room" / "two.py").write_text("2")
    assert cache_directory(package, tmp_path) != before


def test_else_a_directory_that_only_the_user_can_write(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    own = cache_directory(package, tmp_path).parent
    assert own.name == f"magnetar-kernels-{os.getuid()}"
    assert own.stat().st_mode & 0o777 == 0o700
    assert cache_directory(package, tmp_path).parent == own
    own.chmod(0o777)
    elsewhere = cache_directory(package, tmp_path).parent
    assert elsewhere != own
    assert elsewhere.stat().st_mode & 0o777 == 0o700


def test_others_in_the_process_keep_their_place() -> None:
    assert compiled._KEPT_IN != compiled._numba.config.CACHE_DIR
