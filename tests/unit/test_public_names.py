"""The names that programs import from `magnetar`: all there, cheap until they are used, typed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import magnetar
import magnetar.aio
import magnetar.asyncio

MODULES = {"aio", "asyncio", "exceptions", "schema"}
"""What the type checker finds as attributes once they were imported."""
STUB = Path(magnetar.__file__).with_suffix(".pyi")


def test_the_stub_has_the_same_names() -> None:
    tree = ast.parse(STUB.read_text())
    named = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named - MODULES | {"__version__"} == set(magnetar.__all__)


@pytest.mark.parametrize("name", magnetar.__all__)
def test_each_name_can_be_imported(name: str) -> None:
    assert getattr(magnetar, name) is not None
    assert name in dir(magnetar)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Clinet'"):
        magnetar.Clinet  # type: ignore[attr-defined]  # noqa: B018


def test_importing_magnetar_imports_no_client() -> None:
    """A broker imports it, too."""
    said = subprocess.run(
        [sys.executable, "-c", "import sys, magnetar; print([one for one in sys.modules if 'magnetar' in one])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout.strip() == "['magnetar']"


def test_the_asyncio_client_has_two_names() -> None:
    assert magnetar.asyncio.Client is magnetar.aio.Client
    assert {name for name in magnetar.aio.__all__ if not hasattr(magnetar.asyncio, name)} == set()
