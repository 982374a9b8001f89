"""docs/api.md is what the public names say of themselves, and each of them says something."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from tools.api_page import PACKAGES, api_page, documented, public_names

ROOT = Path(__file__).resolve().parents[2]
MODULES = [(module, tuple(names)) for modules in PACKAGES.values() for module, names in modules.items()]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "api.md").read_text("utf-8") == api_page(), "run: python -m tools.api_page > docs/api.md"


@pytest.mark.parametrize(("module", "names"), MODULES, ids=[module for module, _ in MODULES])
def test_every_name_can_be_imported_and_has_a_docstring(module: str, names: tuple[str, ...]) -> None:
    found = importlib.import_module(module)
    for name, home in public_names(module, names):
        assert hasattr(found, name), name
        assert documented(home, name), name


def test_an_unknown_name_of_a_package_is_refused() -> None:
    for name in ("magnetar.jobs", "magnetar.lakehouse", "magnetar.pipelines"):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            importlib.import_module(name).nothing  # noqa: B018  # the access is the test


@pytest.mark.parametrize("page", ["jobs.md", "lakehouse.md", "pipelines.md", "tutorial.md"])
def test_what_the_pages_import_is_in_the_interface(page: str) -> None:
    known = {(module, name) for module, names in MODULES for name, _ in public_names(module, names)}
    text = (ROOT / "docs" / page).read_text("utf-8")
    used = re.findall(r"^ *from (magnetar\.(?:jobs|lakehouse|pipelines|spark)[\w.]*) import ([\w, ]+)$", text, re.M)
    for module, names in used:
        for name in names.split(","):
            assert (module, name.strip()) in known, (module, name)
