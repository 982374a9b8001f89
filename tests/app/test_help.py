"""Every help page answers at once, also on the base install: counted in modules, as seconds depend on the machine."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar import __version__
from magnetar.app import main
from tests.support.command_line import taken
from tests.unit.pipelines.example import TEXT

ALLOWED = {"typer", "typing_extensions", "shellingham", "annotated_doc", "click", "magnetar"}
"""Besides the standard library. All of them together take 60 ms, Rich alone 100, pyarrow 300."""
SLOW = {
    "asyncio",
    "multiprocessing",
    "sqlite3",
    "http",
    "unittest",
    "ssl",
    "xml",
    "concurrent",
    "email",
    "importlib.metadata",
}
OURS = (
    "magnetar.app",
    "magnetar.cli",
    "magnetar.contexts",
    "magnetar.model",
    "magnetar.runtime.command_line",
    "magnetar.runtime.files",
    "magnetar.jobs.broker_flags",
    "magnetar.jobs.results",
    "magnetar.jobs.session",
)
EXTRAS = ["cryptography", "deltalake", "numba", "numpy", "obstore", "pandas", "polars", "ptars", "pyarrow", "pyiceberg",
          "pyspark", "sqlalchemy", "yaml"]  # fmt: skip
MODULES_MAX = 320
"""The most modules that a page may import, those of the standard library too; the pages need about 270 together."""

WALK = """
import contextlib, importlib, io, json, sys

blocked, arguments = json.loads(sys.argv[1]), json.loads(sys.argv[2])

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from magnetar.app import main

def called(arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main.app(arguments, prog_name="magnetar")
            code = 0
        except SystemExit as ended:
            code = ended.code
    return [code, out.getvalue(), err.getvalue()]

def pages(app, before):
    import typer.main
    command = typer.main.get_command(app)
    yield before
    for name, one in sorted(getattr(command, "commands", {}).items()):
        passed = main.PASSED_ON.get(name) if not before else None
        if passed is not None:
            yield from pages(importlib.import_module(f"magnetar.{passed}.command").app, [*before, name])
        elif hasattr(one, "commands"):
            yield [*before, name]
            yield from ([*before, name, inner] for inner in one.commands)
        else:
            yield [*before, name]

if arguments:
    print(json.dumps(called(arguments)))
else:
    told = {" ".join(page): called([*page, "--help"]) for page in pages(main.app, [])}
    for page, said in told.items():
        if page != "generate_documentation" and called([*page.split(), "-h"]) != said:
            said[2] += "-h is another page"
    print(json.dumps([told, sorted(sys.modules)]))
"""


def walk(blocked: list[str], arguments: list[str]) -> object:
    """One command without these packages, or all help pages if no command is given."""
    done = subprocess.run(
        [sys.executable, "-c", WALK, json.dumps(blocked), json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    found: object = json.loads(done.stdout)
    return found


def check_examples(page: str, told: str) -> None:
    """A help page ends with an example of its command, or of one below it, which the command line takes."""
    examples = re.findall(r"Example:\s+magnetar\s+(.*?)(?:\n\n|\Z)", told, re.DOTALL)
    assert examples, f"magnetar {page} --help has no example"
    for example in examples:
        words = shlex.split(example, comments=True)
        hidden = page.startswith("perf ") or page == "generate_documentation"
        assert " ".join(words).startswith(page) or hidden, (page, example)
        taken(words)


@pytest.mark.parametrize("blocked", [[], EXTRAS], ids=["all installed", "base install"])
def test_every_help_page_needs_little(blocked: list[str]) -> None:
    found = walk(blocked, [])
    assert isinstance(found, list)
    pages, modules = found
    assert len(pages) >= 25, sorted(pages)
    assert {"", "pipeline verify", "jobs audit", "lake vacuum", "explain subscription", "perf produce"} <= pages.keys()
    assert {"produce", "consume", "read", "doctor", "contexts add"} <= pages.keys()
    bad = {page: told for page, told in pages.items() if told[0] != 0 or "Usage: magnetar" not in told[1] or told[2]}
    assert bad == {}
    if not blocked:
        for page, told in pages.items():
            check_examples(page, told[1])
    others = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names) - ALLOWED - {"__main__"}
    assert {name for name in others if not name.startswith("_")} == set()
    assert SLOW.isdisjoint(modules)
    ours = [name for name in modules if name.startswith("magnetar.") and not name.startswith(OURS)]
    assert [name for name in ours if not name.endswith(".command") and name.count(".") > 1] == []
    assert len(modules) < MODULES_MAX, len(modules)


@pytest.mark.parametrize(
    "arguments",
    [
        ["pipeline", "check", "FILE"],
        ["pipeline", "status", "FILE"],
        ["lake", "history", "."],
        ["jobs", "audit", "t", "--url", "pulsar://localhost:1"],
    ],
    ids=" ".join,
)
def test_what_needs_more_says_what_to_install(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(TEXT)
    found = walk(EXTRAS, [str(tmp_path / "f.yaml") if one == "FILE" else one for one in arguments])
    assert isinstance(found, list)
    code, _, told = found
    assert code == 1
    assert "which is not installed: pip install 'magnetar[pipelines]'" in told and "Traceback" not in told


def test_every_command_stands_under_a_heading() -> None:
    """Also those that are not there yet may be named; what nobody named would stand under Others."""
    done = subprocess.run(
        [sys.executable, "-m", "magnetar.app.main"], capture_output=True, text=True, timeout=240, check=False
    )
    told = done.stdout + done.stderr
    assert [line for line in told.splitlines() if line in ("A broker:", "Messages:", "Operating:", "Spark:")] == [
        "A broker:",
        "Messages:",
        "Operating:",
        "Spark:",
    ]
    assert "Others:" not in told and "generate_documentation" not in told and told.count("...") == 1, (
        "Usage has the only one"
    )


def test_what_pulsar_client_has_and_this_does_not_is_refused_by_name() -> None:
    found = walk([], ["generate_documentation", "-n", "produce"])
    assert found == [1, "", "magnetar: generate_documentation is not here: docs/command-line.md lists all commands\n"]


def test_the_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "magnetar.app.main", "--version"],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert done.stdout == f"magnetar {__version__}\n"


def test_the_module_knows_the_commands_of_the_script() -> None:
    """Nothing is defined after the line that runs it."""
    done = subprocess.run(
        [sys.executable, "-m", "magnetar.app.main", "--help"], capture_output=True, text=True, timeout=240, check=True
    )
    for command in main.PASSED_ON:
        assert f"  {command} " in done.stdout
