"""Every snippet of README.md and docs/ runs as it stands; those with Spark do so in tests/spark/test_snippets.py."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.command_line import taken
from tests.support.live_broker import live_broker
from tests.support.snippets import ROOT, Snippet, commands, python, snippets

ALL = snippets()
SECURITY = "docs/security.md"
"""tests/docs/test_tls_page.py runs its Python against brokers with the page's settings."""
NOT_RUN = {
    "sql": "DuckDB is not installed here",
}
"""Languages, with the reason."""
CLIENT = "docs/client.md"
WEB = ("docs/rest.md", "docs/websocket.md")
"""tests/docs/test_web_pages.py runs their Python against a broker with a web port."""
ADMIN_CLIENT = "docs/admin-client.md"
"""tests/docs/test_admin_client_page.py runs its Python."""
CLIENT_PAGES = "docs/client-"
"""tests/docs/test_client_pages.py runs the Python of these pages."""
TESTING = "docs/testing.md"
"""tests/docs/test_testing_page.py runs its Python with pytest."""
TUTORIAL = "docs/tutorial.md"
"""tests/spark/test_tutorial.py follows it from its first line to its last."""
OF_OTHERS = (TUTORIAL, TESTING, SECURITY, CLIENT, ADMIN_CLIENT, *WEB)
CHECKED = {
    "make": "the target is there; what it does takes minutes",
    "pip": "the extras are there",
    "python": "the module is there; benchmarks take minutes",
    "OTHER/bin/python": "the file is there; it is for another installation",
    "magnetar": "the command takes these arguments; jobs and pipelines have a Spark session each, brokers run on",
    "spark-submit": "needs a cluster; tests/spark/test_submit.py runs it",
    "export": "sets a variable for the next line",
}
"""Words that commands begin with: what is looked at instead of running them, and why."""
_ASSIGNED = re.compile(r"[A-Z_]+=")


def shell() -> list[tuple[Snippet, list[str]]]:
    found = []
    for one in ALL:
        if one.language == "sh":
            for words in commands(one):
                while _ASSIGNED.match(words[0]):
                    words = words[1:]
                found.append((one, words))
    return found


def test_there_are_snippets_of_known_kinds_only() -> None:
    assert {one.language for one in ALL} == {"", "python", "sh", "yaml", *NOT_RUN}
    assert {words[0] for _, words in shell()} == CHECKED.keys()
    assert importlib.util.find_spec("duckdb") is None, "then the SQL can be run"
    # What is not said to be code is none.
    first = re.compile(r"^(magnetar|make|pip|python|spark-submit|export|import|from|\$) ", re.MULTILINE)
    assert [one.where for one in ALL if not one.language and first.search(one.text)] == []
    # Nor is there any that is only indented.
    indented = re.compile(r"(?<=\n\n) {4}(magnetar|make|pip|python|import|from) ")
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [path.name for path in files if indented.search(path.read_text())] == []


@pytest.mark.parametrize(("snippet", "words"), shell(), ids=lambda one: getattr(one, "where", None))
def test_a_command(snippet: Snippet, words: list[str]) -> None:
    match words[0]:
        case "make":
            targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert words[1] in targets and all("=" in one for one in words[2:])
        case "pip":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())
            clients = {re.split(r"[><=]", one)[0] for one in project["dependency-groups"]["dev"]}
            asked = re.fullmatch(r"\.(?:\[(\w+)\])?", words[2])
            assert words[1] == "install" and len(words) == 3
            if asked:
                assert asked[1] is None or asked[1] in project["project"]["optional-dependencies"]
            else:
                assert words[2] in clients, "a package that the tests do not know"
        case "python":
            assert words[1] == "-m" and importlib.util.find_spec(words[2])
        case "OTHER/bin/python":
            assert (ROOT / words[1]).is_file()
        case "magnetar":
            taken(words[1:])
        case _:
            assert words[0] in CHECKED


def test_commands_of_the_readme_that_install_name_extras() -> None:
    """They stand in the text."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"pip install '?\.(?:\[(\w+)\])?'?`", (ROOT / "README.md").read_text())
    assert set(named) == {"", *extras}
    assert not re.search(r"pip install '?magnetar", (ROOT / "README.md").read_text()), "no registry has it"


@pytest.mark.parametrize("snippet", [one for one in ALL if one.language == "yaml"], ids=lambda one: one.where)
def test_a_pipeline(snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_TOKEN", "x")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "scoring.py").write_text("def add_score(frame, weight):\n    return frame\n")
    (tmp_path / "f.yaml").write_text(snippet.at("pulsar://127.0.0.1:6650", tmp_path))
    command = importlib.import_module("magnetar.pipelines.command")
    done = CliRunner().invoke(command.app, ["check", str(tmp_path / "f.yaml")])
    assert done.exit_code == 0 and "is valid" in done.output, done.output


def test_clients(tmp_path: Path) -> None:
    """Python that needs no Spark."""
    plain = [one for one in python(spark=False) if one.file not in OF_OTHERS and not one.file.startswith(CLIENT_PAGES)]
    assert [one.file for one in plain] == ["README.md"]
    with live_broker(tmp_path) as broker:
        for one in plain:
            known: dict[str, Any] = {}
            exec(compile(one.at(broker.url, tmp_path), one.where, "exec"), known)
            assert known["message"].data() == b"order 1"
            known["client"].close()


def test_the_native_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its programs do what the page says."""
    page = [one for one in python(spark=False) if one.file == CLIENT]
    with live_broker(tmp_path) as broker:
        for one in page:
            exec(compile(one.at(broker.url, tmp_path), one.where, "exec"), {"__name__": "page"})
    said = capsys.readouterr().out
    assert "\nb'10 apples' {'shop': 'north'} customer-7\nTrue b'10 apples'\n" in said, "the blocking client"
    assert "\nb'10 apples' {'shop': 'north'} customer-7 (" in said, "the asyncio client"
    assert "\n1000 (" in said
