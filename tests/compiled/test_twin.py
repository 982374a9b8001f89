"""A short form of the tests on the compiled twin: ``short_form.txt``, in a process that refuses the pure build.

On a machine that cannot compile it is skipped; ``MAGNETAR_COMPILED=required`` makes that a failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.compiled.library import missing
from tools.compiled.twin import make_twin

from magnetar.compiled_build import COMPILED, WANTED, running_build

ROOT = Path(__file__).resolve().parents[2]
SHORT_FORM = Path(__file__).with_name("short_form.txt")
FIRST = (
    "magnetar.protocol.decoder",
    "magnetar.storage.log.write_group",
    "magnetar.broker.delivery.dispatchers.key_shared",
    "magnetar.broker.topic.publish.producer",
    "magnetar.broker.connection.handlers.consumer_commands",
)
"""One of each room; while compiled modules refer to each other, a circle of imports is a crash."""


@pytest.fixture(scope="module")
def twin() -> Path:
    """The twin's ``src``."""
    if reason := missing():
        assert os.environ.get("MAGNETAR_COMPILED") != "required", reason
        pytest.skip(reason)
    return make_twin(ROOT, level="0")


def run(source: Path, build: str, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(source), str(ROOT))), WANTED: build}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_no_library_stands_where_the_pure_build_would_load_it() -> None:
    assert not list((ROOT / "src").rglob("*.so"))
    assert running_build().kind == os.environ.get(WANTED, "pure")


@pytest.mark.timeout(900)
def test_every_module_is_the_compiled_one(twin: Path) -> None:
    said = run(twin, "compiled", "-m", "magnetar.compiled_build")
    assert said.returncode == 0, said.stderr
    first, *others = said.stdout.splitlines()
    assert first == f"compiled build, {len(COMPILED)} modules"
    assert [line.split()[0] for line in others] == list(COMPILED)
    assert all(line.endswith(".so") and str(twin) in line for line in others)


@pytest.mark.parametrize("module", FIRST)
def test_it_can_be_the_first_that_is_imported(twin: Path, module: str) -> None:
    found = run(twin, "compiled", "-c", f"import {module}")
    assert found.returncode == 0, found.stderr[-2000:]


def test_the_wrong_build_is_refused(twin: Path) -> None:
    for source, wanted, runs in ((ROOT / "src", "compiled", "pure build"), (twin, "pure", "compiled build")):
        tested = run(source, wanted, "-m", "pytest", "-q", "tests/unit/model/test_hashing.py")
        assert tested.returncode == 4
        assert f"{WANTED}={wanted}, but this is the {runs}" in tested.stderr
        started = run(source, wanted, "-m", "magnetar.app.main", "standalone", "--data", os.devnull)
        assert started.returncode == 1
        assert f"{WANTED}={wanted}, but this is the {runs}" in started.stderr


@pytest.mark.timeout(900)
def test_the_short_form_passes_on_it(twin: Path) -> None:
    tests = SHORT_FORM.read_text().split()
    tested = run(twin, "compiled", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *tests)
    assert tested.returncode == 0, tested.stdout[-6000:] + tested.stderr[-2000:]
