"""The groups of the admin client are those of the table of operations, and type checkers know them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tools.admin_groups import MODULES, PLACE, ROOT, formatted, module

import magnetar
from magnetar.admin_client import client
from tests.unit.admin_client import typed_program


@pytest.mark.parametrize("name", MODULES)
def test_the_groups_are_current(name: str) -> None:
    """``python -m tools.admin_groups`` renews them."""
    assert (PLACE / f"{name}.py").read_text("utf-8") == formatted(module(awaited=MODULES[name]))


def test_the_package_gives_both_clients_when_they_are_asked_for() -> None:
    assert (magnetar.Admin, magnetar.AsyncAdmin) == (client.Admin, client.AsyncAdmin)
    code = "import sys, magnetar.app.main; print(any(n.startswith('magnetar.admin_') for n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False", "a broker imports them for nothing"


def test_a_program_is_typed() -> None:
    """``make check`` has mypy judge ``typed_program.py``, and finds an ignored error that is none."""
    assert magnetar.__file__ and Path(magnetar.__file__).with_name("py.typed").exists()
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert configured["strict"] and not {"warn_unused_ignores"} & set(configured)
    assert "tests" in configured["files"]
    assert typed_program.__name__.startswith("tests.")
