"""The package is Python alone, and says that it carries types."""

from __future__ import annotations

from pathlib import Path

import magnetar

PACKAGE = Path(magnetar.__file__).parent
COMPILED = {".so", ".pyd", ".dll", ".dylib", ".c", ".pyx", ".a"}


def test_there_is_no_compiled_code() -> None:
    """So one wheel is for every platform."""
    assert not [path for path in PACKAGE.rglob("*") if path.suffix in COMPILED]


def test_the_package_carries_its_types() -> None:
    assert (PACKAGE / "py.typed").exists()
