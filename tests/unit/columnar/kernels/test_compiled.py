"""Where compiled code is kept: in a place that only the user can write, and that no other sources share."""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from magnetar.columnar.kernels import compiled
from magnetar.columnar.kernels.compiled import KeptKernel, cache_directory


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
    assert str(compiled._KEPT_IN) != compiled._numba.config.CACHE_DIR


def _doubled(number: int) -> int:
    return 2 * number


def _used(*places: Path) -> Counter[str]:
    """Use a kernel anew with these places, and count what its form took: a compilation or a look at the disk."""
    made: Any = compiled._numba.njit(_nrt=False)(_doubled)
    made._cache = KeptKernel(_doubled, places)
    assert made(21) == 42
    return Counter(compiled=sum(made.stats.cache_misses.values()), found=sum(made.stats.cache_hits.values()))


def _files(place: Path) -> list[str]:
    return sorted(one.name for one in place.rglob("*") if one.is_file())


def test_a_form_is_compiled_once_and_found_by_the_next_process(tmp_path: Path) -> None:
    assert _used(tmp_path) == Counter(compiled=1)
    assert [Path(name).suffix for name in _files(tmp_path)] == [".nbc", ".nbi"]
    assert _used(tmp_path) == Counter(found=1)


def test_what_was_installed_is_used_and_never_written_to(tmp_path: Path) -> None:
    """Users of a container or of the system's Python cannot write beside the sources, and need not."""
    installed, own = tmp_path / "installed", tmp_path / "own"
    _used(installed)
    before = _files(installed)
    assert _used(installed, own) == Counter(found=1)
    assert not own.exists()
    # Of a processor or a numba that is another one there is nothing, and the user's own place has it from then on.
    for one in installed.rglob("*.nbi"):
        one.write_bytes(b"")
    assert _used(installed, own) == Counter(compiled=1)
    assert _used(installed, own) == Counter(found=1)
    assert _files(installed) == before and _files(own) == before


@pytest.mark.parametrize("refusal", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_refuses_costs_a_compilation_and_no_error(
    refusal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(refusal, os.strerror(refusal))

    for name in ("makedirs", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, refuse)
            assert _used(tmp_path / name) == Counter(compiled=1)
    assert _used(tmp_path / "replace") == Counter(compiled=1)


def test_half_a_form_is_none(tmp_path: Path) -> None:
    _used(tmp_path)
    for one in tmp_path.rglob("*.nbc"):
        one.write_bytes(one.read_bytes()[:100])
    assert _used(tmp_path) == Counter(compiled=1)
    assert _used(tmp_path) == Counter(found=1)
