"""What the client says to its user names no rule of a book that only this project has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import magnetar

PACKAGE = Path(magnetar.__file__).parent


def _said(tree: ast.AST) -> list[str]:
    """The texts of what is raised."""
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    constants = [part for node in raised for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return [part.value for part in constants if isinstance(part.value, str)]


def test_no_error_cites_a_rule() -> None:
    citing = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in _said(ast.parse(path.read_text()))
        if re.search(r"\brules? \d", text)
    }
    assert not citing
