"""Copy the parameters with which the asyncio client opens things to the blocking client.

``python -m tools.twins`` after a parameter of `create_producer`, `subscribe` or `create_reader` of the asyncio client
was added or changed: parameters that only threads have stay, imports that their types need are added. A test
(`tests/unit/client/blocking/test_twins.py`) fails until that was done.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
ORIGINALS: Final = tuple(ROOT / "src/magnetar/client/aio" / one for one in ("client.py", "reader_client.py"))
TWIN: Final = ROOT / "src/magnetar/client/blocking/client.py"
METHODS: Final = ("create_producer", "subscribe", "create_reader", "create_table_view")
OF_THREADS: Final = {
    "subscribe": ("message_listener: Listener | None = None,", "schema"),
    "create_reader": ("reader_listener: Listener | None = None,", "schema"),
}
"""Of a method: a parameter that only threads have, as it is written, and the one it stands behind."""
PLACES: Final = {
    "subscribe": (("pattern_auto_discovery_period", "properties"), ("is_pattern_topic", "durable")),
}
"""Of a method: parameters that stand elsewhere in the official client for threads, and the ones they stand behind."""


def signature(text: str, method: str) -> str:
    """Return the lines of a method's parameters, empty if there is no such method."""
    found = re.search(rf"def {method}\(\n(.*?)\n    \) ->", text, re.DOTALL)
    return found[1] if found else ""


def behind_parameter(lines: str, line: str, behind: str) -> str:
    """Return the lines of parameters with one more behind the one of that name."""
    return re.sub(rf"(^        {behind}:[^\n]*\n)", lambda found: f"{found[1]}{line}\n", lines, flags=re.MULTILINE)


def needed_imports(original: str, twin: str) -> list[str]:
    """Return imports of the original for names that the twin uses and does not import."""
    used = {node.id for node in ast.walk(ast.parse(twin)) if isinstance(node, ast.Name)}
    have = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(twin))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
    }
    found = []
    for node in ast.walk(ast.parse(original)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in used - have and alias.asname is None:
                    found.append(f"from {node.module} import {alias.name}")
    return found


def with_parameters_of(original: str, twin: str) -> str:
    """Return the twin with the parameters of the original."""
    for method in METHODS:
        new, old = signature(original, method), signature(twin, method)
        if not new or not old:
            continue
        if method in OF_THREADS:
            line, behind = OF_THREADS[method]
            new = behind_parameter(new, f"        {line}", behind)
        for name, behind in PLACES.get(method, ()):
            line = next(one for one in new.split("\n") if one.startswith(f"        {name}:"))
            new = behind_parameter(new.replace(f"{line}\n", ""), line, behind)
        twin = twin.replace(f"def {method}(\n{old}", f"def {method}(\n{new}")
    imports = needed_imports(original, twin)
    return twin.replace("\nfrom magnetar", "\n" + "".join(f"{one}\n" for one in imports) + "from magnetar", 1)


def main() -> None:
    """Write the blocking client, sorted and formatted."""
    for original in ORIGINALS:
        TWIN.write_text(with_parameters_of(original.read_text(), TWIN.read_text()))
    for command in (["check", "--fix", "-q", "--select", "I,F401"], ["format", "-q"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, str(TWIN)], check=True)


if __name__ == "__main__":
    main()
