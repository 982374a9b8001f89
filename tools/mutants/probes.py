"""Puts probes into a copy of the product: each stretch of statements that run one after the other marks that it ran.

A probe is one store into a file that all processes of a test have mapped, so brokers that tests start are seen, too,
even those that are killed. It costs some 40 ns for a stretch, where the interpreter's tracing costs 500 ns for a line.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

MODULE: Final = "mutant_probes"
_NAME: Final = "_PASSED_HERE"
_TEXT: Final = """\
import mmap
import os

try:
    _file = os.open({path!r}, os.O_RDWR)
    {name} = mmap.mmap(_file, 0)
    os.close(_file)
except OSError:
    {name} = bytearray({count})
"""

Stretch = tuple[int, int]
"""First and last line."""


def module(path: Path, count: int) -> str:
    """The module that holds the marks of all."""
    return _TEXT.format(path=str(path), name=_NAME, count=count)


def planted(source: bytes, first: int) -> tuple[str, list[Stretch]]:
    """The text with probes, numbered from ``first`` on, and the lines of the original that each stands for."""
    tree = ast.parse(source)
    planter = _Planter(first)
    planter.visit(tree)
    at = next((at for at, node in enumerate(tree.body) if not _is_head(node)), len(tree.body))
    tree.body.insert(at, ast.ImportFrom(module=MODULE, names=[ast.alias(name=_NAME)], level=0))
    return ast.unparse(ast.fix_missing_locations(tree)), planter.stretches


def _is_head(node: ast.stmt) -> bool:
    """What has to stand before any other import."""
    return _is_text(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class _Planter(ast.NodeVisitor):
    def __init__(self, first: int) -> None:
        self.stretches: list[Stretch] = []
        self._first = first

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        said = int(_is_text(node.body[0]))
        node.body[said:] = self._block(node.body[said:])

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """A stretch ends with the head of a compound statement: what comes behind it may not be reached."""
        result: list[ast.stmt] = []
        begins, at = True, 0
        for node in statements:
            last = _last_line(node)
            if begins:
                at = len(self.stretches)
                self.stretches.append((node.lineno, last))
                result.append(ast.parse(f"{_NAME}[{self._first + at}] = 1").body[0])
            else:
                self.stretches[at] = (self.stretches[at][0], last)
            result.append(node)
            begins = False
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._function(node)
            elif isinstance(node, ast.ClassDef):
                self.generic_visit(node)
            elif hasattr(node, "body") or isinstance(node, ast.Match):
                begins = True
                self._compound(node)
        return result

    def _compound(self, node: ast.stmt) -> None:
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(node, name, self._block(getattr(node, name)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self._block(part.body)


def _last_line(node: ast.stmt) -> int:
    """Of the statement, or of its head."""
    blocks = [block for name in ("body", "orelse", "finalbody") if (block := getattr(node, name, None))]
    blocks += [part.body for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
    heads = [block[0].lineno - 1 for block in blocks]
    return max(node.lineno, min(heads, default=node.end_lineno or node.lineno))
