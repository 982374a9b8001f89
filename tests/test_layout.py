"""What the tree must look like: small files, small functions, one noun each, nothing dead."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tools.structure import RULES, Structure, checkout

ROOT = Path(__file__).resolve().parent.parent
FUNCTION_LINES_MAX = 70
BLOB_BYTES_MAX = 512 * 1024
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}
COMMANDS = {
    f"magnetar.{package}.command"
    for package in (
        "jobs",
        "lakehouse",
        "pipelines",
        "cli.tokens",
        "cli.permissions",
        "cli.contexts",
        "cli.completion",
        "cli.perf",
        *(f"cli.messages.{name}" for name in ("produce", "consume", "read")),
    )
}
FUNCTIONS = {f"magnetar.cli.admin.{name}_commands" for name in ("message", "namespace", "policy", "topic")}
PLUGIN = "magnetar.testing.kit.pytest_plugin"
FORK_SERVER = "magnetar.spark.forks.fork_server"
"""A session starts it by its name."""
ENTRY_POINTS = {
    "magnetar.__main__",
    "magnetar.app.main",
    "magnetar.cli.admin.command",
    FORK_SERVER,
    PLUGIN,
    *COMMANDS,
    *FUNCTIONS,
}
HELD = [rule for rule in RULES if rule != "fragments"]
"""What `tools/structure.py` counts and must not find; whether a docstring is a sentence is for people to judge."""
GENERATED = ("src/magnetar/protocol/generated", "src/magnetar/admin_client/generated")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name and not name.startswith(GENERATED)]
    return [path for path in paths if path.exists()]


PYTHON = tracked("*.py")
SOURCE = [path for path in PYTHON if path.is_relative_to(ROOT / "src")]


@cache
def trees() -> dict[str, ast.Module]:
    """Every Python file's syntax tree: those that the rules of the structure have read are not parsed again."""
    return {module.path: module.tree for module in checkout().modules}


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: str(path.relative_to(ROOT)))
def test_file(path: Path) -> None:
    text = path.read_text()
    assert path.stem not in BANNED_NAMES
    tree = trees()[str(path.relative_to(ROOT))]
    if text.strip():
        assert ast.get_docstring(tree), f"{path} has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{path.name}:{node.lineno} {node.name} has {length} lines"


@pytest.mark.parametrize("rule", HELD)
def test_the_structure(rule: str) -> None:
    """Full folders, files that are too long, names with two meanings, references that lead nowhere: there are none."""
    assert getattr(checkout(), rule) == [], "see python -m tools.structure --all"


def test_what_breaks_a_rule_is_found(tmp_path: Path) -> None:
    """Each rule of the command finds what it is for."""
    broken = {
        "src/magnetar/room/__init__.py": '"""A room: ``a``."""\n',
        "src/magnetar/room/a.py": '"""A."""\n\n\nclass Twice:\n    """For one."""\n',
        "src/magnetar/room/sending.py": '"""As SEMAN'
        + 'TICS 5 says."""\n\n\nclass Twice:\n    """It."""\n'
        + "#\n" * 400,
        "tests/test_b.py": '"""B."""\n\nfrom tests.test_c import c\n\n\ndef test_b() -> None:\n    """5.1; that."""\n',
    }
    broken |= {f"src/magnetar/room/m{number}.py": "" for number in range(15)}
    for name, text in broken.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    found = Structure(tmp_path)
    assert [rule for rule in HELD if not getattr(found, rule)] == []


def test_no_large_blobs() -> None:
    large = [path for path in tracked() if path.stat().st_size > BLOB_BYTES_MAX]
    assert not large


def test_every_module_is_used() -> None:
    """A module that no other imports and that is no entry point is dead."""
    imported: set[str] = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    modules = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in SOURCE}
    used = {name.removesuffix(".__init__") for name in modules} & imported
    dead = {name for name in modules if not name.endswith("__init__")} - used - ENTRY_POINTS
    assert not dead


def test_paths_named_in_documents_exist() -> None:
    named = re.compile(r"`((?:src|tests|docs|benchmarks|tools|requirements|examples)/[\w./-]+)`")
    missing = []
    for document in tracked("*.md"):
        for path in named.findall(document.read_text()):
            if not (ROOT / path).exists():
                missing.append(f"{document.relative_to(ROOT)}: {path}")
    drawing = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    drawn = re.findall(r"[a-z_]+(?:/[a-z_]+)+", drawing)
    assert len(drawn) > 10
    missing += [f"the drawing: {path}" for path in drawn if not _in_product(path)]
    assert not missing


def _in_product(path: str) -> bool:
    return (ROOT / "src/magnetar" / path).is_dir() or (ROOT / "src/magnetar" / f"{path}.py").is_file()
