"""docs/guarantees.md and the simulations say the same: each promise has a simulation, each simulation a promise."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()


def promises() -> dict[str, str]:
    """Heading to text."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_promise_names_its_simulation() -> None:
    for heading, text in promises().items():
        lines = re.findall(r"^Guarded by (.+)\.$", text, flags=re.MULTILINE)
        assert len(lines) == 1, heading
        # what is no matter of the log, the disk or the network in between has its tests where it is
        named = re.findall(r"`(tests/(?:sim|admin)/(?:\w+/)?test_\w+\.py)`", lines[0])
        assert named, heading
        for one in named:
            assert (ROOT / one).is_file(), one


def test_every_simulation_guards_a_promise_and_notices_a_wrong_build() -> None:
    for path in sorted((ROOT / "tests" / "sim").glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        assert f"Guarded by `tests/sim/{path.name}`." in PAGE, path.name
        source = path.read_text()
        assert re.search(r"^def test_\w+_(is|are)_noticed", source, flags=re.MULTILINE), path.name
        if "at_every_await(" in source:
            continue  # it goes through all awaits, and draws nothing by a seed
        assert "caught(" in source, path.name
        assert "run_seeds(" in source, path.name
