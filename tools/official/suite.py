"""The official suite, extracted from a git directory into a folder and pointed at a broker's real addresses.

The suite hard-codes `localhost` with the ports 6650, 6651, 8080 and 8443. The extracted copy gets the real ones by
textual replacement; nothing else of it is changed. Tests are found by parsing, not by importing, so that a missing
dependency fails the tests that need it and not the listing.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

MODULES = ("pulsar_test", "reader_test", "table_view_test", "schema_test", "asyncio_test")
HARD_CODED = re.compile(r"\blocalhost:(6650|6651|8080|8443)\b")
TOKEN_FILE = ".test-token.txt"


class SuiteError(Exception):
    """The suite is not where it was said to be."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Ports of the broker under test. A port of 0 leaves the suite's own number, where nothing should listen."""

    broker: int
    http: int
    broker_tls: int = 0
    http_tls: int = 0

    def port(self, hard_coded: str) -> str:
        real = {"6650": self.broker, "8080": self.http, "6651": self.broker_tls, "8443": self.http_tls}[hard_coded]
        return str(real) if real else hard_coded


def extract(git_directory: Path, target: Path, revision: str = "HEAD") -> Path:
    """Unpack the suite's `tests` folder below ``target`` and return it; the git directory needs no work tree."""
    done = subprocess.run(
        ["git", "-C", str(git_directory), "archive", "--format=tar", revision, "tests"],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise SuiteError(f"no suite in {git_directory}: {done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as packed:
        packed.extractall(target, filter="data")
    return target / "tests"


def revision(git_directory: Path) -> str:
    """The commit that `extract` takes by default, shortened."""
    command = ["git", "-C", str(git_directory), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def point_at(tests: Path, addresses: Addresses) -> None:
    """Rewrite the hard-coded addresses in the extracted copy."""
    for module in MODULES:
        file = tests / f"{module}.py"
        text = HARD_CODED.sub(lambda found: f"localhost:{addresses.port(found[1])}", file.read_text())
        file.write_text(text)


def names(tests: Path) -> list[str]:
    """Every test as `module.Class.method`, in the order of the files: what `python -m unittest` takes."""
    found: list[str] = []
    for module in MODULES:
        tree = ast.parse((tests / f"{module}.py").read_text())
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                methods = {
                    item.name: None
                    for item in node.body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test")
                }
                # a name that is defined twice is one test: the later definition replaced the earlier one
                found.extend(f"{module}.{node.name}.{method}" for method in methods)
    return found
