"""``docs/api.md``, made from the signatures and docstrings of what programs import; nothing is imported for that.

``python -m tools.api_page > docs/api.md`` renews it; `tests/docs/test_api_page.py` compares.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).resolve().parents[1] / "src"
PACKAGES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "Spark": {
        "magnetar.spark": ("register",),
        "magnetar.spark.session": ("local_session", "end_session", "errors_into"),
        "magnetar.spark.options": ("for_batch",),
        "magnetar.spark.sink.foreach_batch": ("staged",),
        "magnetar.spark.progress": ("watch",),
        "magnetar.spark.cluster": ("standalone_cluster",),
    },
    "Lakehouse": {"magnetar.lakehouse": (), "magnetar.lakehouse.merge": ("merged", "POSITION")},
    "Pipelines": {"magnetar.pipelines": (), "magnetar.pipelines.redrive": ("redrive", "RedriveResult")},
    "Jobs": {"magnetar.jobs": ()},
    "Testing": {
        "magnetar.testing.kit.pulsar_broker": ("PulsarBroker",),
        "magnetar.testing.kit.virtual_clock": ("VirtualClock",),
        "magnetar.testing.kit.broker_faults": ("BrokerFaults", "Chaos", "FullDiskFault"),
        "magnetar.testing.kit.fault": ("Fault",),
        "magnetar.testing.kit.topic_inspection": ("TopicInspection", "InspectedSubscription", "InspectedProducer"),
        "magnetar.testing.kit.message_explanation": ("MessageExplanation", "SubscriptionVerdict"),
        "magnetar.testing.simloop": ("run", "SimLoop", "SimClock"),
        "magnetar.testing.machine": ("Machine",),
        "magnetar.testing.broker": ("BrokerMachine",),
        "magnetar.testing.network": ("Network",),
        "magnetar.testing.faultfiles": ("Faults", "FaultFileSystem"),
        "magnetar.testing.rawclient": ("make_entry", "RawClient", "RawProducer", "RawConsumer"),
    },
}
"""Modules that programs import from, and their names; none: those of the package's ``__all__``."""
_HEAD: Final = """\
# Python interface

<!-- generated: python -m tools.api_page > docs/api.md -->

What programs import, with its signatures. Everything else in `magnetar` may change without notice.
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def api_page() -> str:
    """The whole page: a section for each package, a part for each module."""
    return _HEAD + "".join(
        f"\n## {title}\n" + "".join(part for module, names in modules.items() for part in _module(module, names))
        for title, modules in PACKAGES.items()
    )


def public_names(module: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """The names of a module and where each is defined."""
    constants = {
        one.targets[0].id: one.value
        for one in _tree(module).body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    } | {
        one.target.id: one.value
        for one in _tree(module).body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value is not None
    }
    listed: list[str] = list(names) or ast.literal_eval(constants["__all__"])
    exports: dict[str, str] = ast.literal_eval(constants["_EXPORTS"]) if "_EXPORTS" in constants else {}
    for one in _tree(module).body:
        if isinstance(one, ast.ImportFrom) and one.module is not None:
            exports |= {alias.name: one.module for alias in one.names if alias.name in listed}
    return [(name, exports.get(name, module)) for name in listed]


def documented(module: str, name: str) -> str:
    """The docstring of a name; empty if it has none."""
    _, doc = _found(module, name)
    return doc


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_source(module))


def _source(module: str) -> str:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.read_text("utf-8")


def _found(module: str, name: str) -> tuple[ast.stmt, str]:
    for node, following in _with_next(_tree(module).body):
        if isinstance(node, Function | ast.ClassDef) and node.name == name:
            return node, ast.get_docstring(node) or ""
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return node, _text(following)
    raise LookupError(f"{module} has no {name}")


def _with_next(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    yield from zip(body, [*body[1:], None], strict=True)


def _text(node: ast.stmt | None) -> str:
    """The text of a string that stands alone, which documents what is before it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return cleandoc(node.value.value)
    return ""


def _module(module: str, names: Sequence[str]) -> Iterator[str]:
    yield f"\n### `{module}`\n"
    for name, home in public_names(module, names):
        node, doc = _found(home, name)
        if isinstance(node, Function):
            yield _entry(_signature(node), doc)
        elif isinstance(node, ast.ClassDef):
            yield from _class(node, doc)
        else:
            assert isinstance(node, ast.AnnAssign) and node.value is not None, "a constant has a value"
            yield _entry(f"{name} = {ast.get_source_segment(_source(home), node.value)}", doc)


def _entry(code: str, doc: str) -> str:
    return f"\n```python\n{code}\n```\n\n{doc}\n"


def _signature(node: Function, *, method: bool = False) -> str:
    arguments = node.args
    if method and arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments = ast.arguments(
            arguments.posonlyargs, arguments.args[1:], arguments.vararg, arguments.kwonlyargs, arguments.kw_defaults,
            arguments.kwarg, arguments.defaults,
        )  # fmt: skip
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    gives = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    line = f"{word} {node.name}({ast.unparse(arguments)}){gives}"
    if len(line) <= 110:
        return line
    parts = ast.unparse(arguments)
    lines, depth, start = [], 0, 0
    for at, sign in enumerate(parts):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            lines.append(parts[start : at + 1].strip())
            start = at + 1
    lines.append(f"{parts[start:].strip()},")
    return "\n".join([f"{word} {node.name}(", *(f"    {one}" for one in lines), f"){gives}"])


def _class(node: ast.ClassDef, doc: str) -> Iterator[str]:
    bases = ", ".join(ast.unparse(one) for one in node.bases if ast.unparse(one) != "NamedTuple")
    made = next((one for one in node.body if isinstance(one, Function) and one.name == "__init__"), None)
    head = f"class {node.name}({bases})" if bases else f"class {node.name}"
    if made is not None:
        head += "\n" + _signature(made, method=True).replace("def __init__", node.name).removesuffix(" -> None")
    yield _entry(head, doc)
    fields = [
        f"- `{one.target.id}: {ast.unparse(one.annotation)}`" + (f": {text}" if (text := _text(following)) else "")
        for one, following in _with_next(node.body)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and not one.target.id.startswith("_")
    ]
    if fields:
        yield "\n" + "\n".join(" ".join(field.split()) for field in fields) + "\n"
    for one in node.body:
        if isinstance(one, Function) and not one.name.startswith("_") and (said := ast.get_docstring(one)):
            marks = {ast.unparse(mark) for mark in one.decorator_list}
            line = _signature(one, method=True).replace("\n    ", " ").replace("\n", "")
            if "property" in marks and one.returns is not None:
                line = f"{one.name}: {ast.unparse(one.returns)}"
            line = line.removeprefix("def ").replace("( ", "(").replace(",)", ")")
            yield f"\n- `{line}`: {' '.join(said.split())}\n"


if __name__ == "__main__":
    print(api_page(), end="")
