"""The names that `src/magnetar` defines, by reading its syntax trees: modules, classes, functions, members."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

from tools.syntax_trees import parsed

ROOT: Final = Path(__file__).resolve().parent.parent.parent
SOURCE: Final = ROOT / "src"


@cache
def trees() -> dict[str, ast.Module]:
    """Every module and package of the product by its dotted name."""
    paths = sorted(SOURCE.rglob("*.py"))
    names = [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return dict(zip(names, parsed(path.read_text() for path in paths), strict=True))


@cache
def names() -> frozenset[str]:
    """Every dotted name that can be referred to: modules, what they define, and members of their classes."""
    found = set(trees())
    for module, tree in trees().items():
        found |= {f"{module}.{name}" for name in _defined(tree)}
    for stub in SOURCE.rglob("*.pyi"):  # names that a package imports when they are asked for
        module = ".".join(stub.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found |= {f"{module}.{name}" for name in _defined(ast.parse(stub.read_text()))}
    return frozenset(found)


@cache
def classes() -> dict[str, frozenset[str]]:
    """The modules that define each class or type alias."""
    places: dict[str, set[str]] = {}
    for module, tree in trees().items():
        for node in tree.body:
            for name in _bound(node) if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else ():
                if name[:1].isupper():
                    places.setdefault(name, set()).add(module)
    return {name: frozenset(modules) for name, modules in places.items()}


def _defined(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    for node in tree.body:
        found |= _bound(node)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{member}" for member in _members(node)}
    return found


def _bound(node: ast.stmt) -> set[str]:
    """The names that one statement of a module or class defines, those within `if` and `try` too."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.TypeAlias if hasattr(ast, "TypeAlias") else ()):
        return {node.name.id}
    if isinstance(node, ast.If | ast.Try | ast.With):
        return set().union(*(_bound(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)))
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {one.id for target in targets if target for one in ast.walk(target) if isinstance(one, ast.Name)}


def _members(node: ast.ClassDef) -> set[str]:
    found = set().union(*(_bound(child) for child in node.body))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "self":
            found.add(inner.attr)
    return found
