"""Each effective setting with a test that sees its effect, and the proof: the test fails while the setting is inert.

``seen_settings.tsv`` names the tests; ``python -m tools.coverage proven_settings`` runs them all, each while its
setting keeps its default whatever it is given (`inert_settings`), and exits with 1 if one does not notice.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FILE: Final = Path(__file__).with_name("seen_settings.tsv")


def rows() -> dict[str, str]:
    """The test of each setting."""
    lines = FILE.read_text("utf-8").splitlines()[1:]
    return dict(line.split("\t") for line in lines)


@cache
def _tests_of(path: str) -> frozenset[str]:
    file = ROOT / path
    tree = ast.parse(file.read_text("utf-8")) if file.exists() else ast.Module([], [])
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def without_test() -> list[str]:
    """The settings whose test is not in the tree any more."""
    found = []
    for name, test in rows().items():
        path, _, case = test.partition("::")
        if case.partition("[")[0] not in _tests_of(path):
            found.append(name)
    return found


def unnoticed(wanted: Mapping[str, str]) -> list[str]:
    """The settings of these tests, setting by test, that can be inert without their test's notice."""
    with tempfile.TemporaryDirectory(prefix="inert-") as scratch:
        file = Path(scratch) / "wanted.json"
        file.write_text(json.dumps(dict(wanted)), "utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tools.coverage.inert_settings",
            "-p",
            "no:cacheprovider",
        ]
        subprocess.run(
            [*command, "--tb=no", "--timeout=120", *sorted(wanted)], cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
            env={**os.environ, "INERT_SETTINGS": str(file)},
        )  # fmt: skip
        failed = set(json.loads(file.with_suffix(".failed").read_text("utf-8")))
    return sorted(name for test, name in wanted.items() if test not in failed)


def main() -> int:
    """Run every test of the table, as often as it stands for several settings."""
    left, found = rows(), without_test()
    while left:
        wanted = {test: name for name, test in left.items()}
        found += unnoticed(wanted)
        left = {name: test for name, test in left.items() if name not in wanted.values()}
        print(f"{len(left)} settings left", flush=True)
    print(f"{len(rows()) - len(found)} settings whose test notices that they are inert; {len(found)} others: {found}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
