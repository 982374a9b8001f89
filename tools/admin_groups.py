"""The groups of the admin client, made from the table of operations.

``python -m tools.admin_groups`` writes both modules of `src/magnetar/admin_client/generated`;
`tests/unit/admin_client/test_generated.py` compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin

from magnetar.admin_api.models.record import ApiModel
from magnetar.admin_api.operation import MetricsText, Operation, Parameter, PlainText, RawMessage
from magnetar.admin_api.operations.catalogue import GROUPS, OPERATIONS
from magnetar.admin_api.path_parameters import PATH_PARAMETERS

ROOT: Final = Path(__file__).resolve().parents[1]
PLACE: Final = ROOT / "src/magnetar/admin_client/generated"
MODULES: Final = {"blocking_groups": False, "asyncio_groups": True}
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CONTAINERS: Final = {list: "List", dict: "Dict"}
_WIDTH: Final = 120


class Group:
    """One class of a module."""

    def __init__(self, name: str, *, awaited: bool) -> None:
        self.name = name
        self.awaited = awaited
        self.models: dict[str, str] = {}

    @property
    def class_name(self) -> str:
        """Its name in Python."""
        return ("Async" if self.awaited else "") + "".join(map(str.capitalize, self.name.split("_"))) + "Group"

    def text(self) -> str:
        """Its definition."""
        methods = "\n".join(self._method(one) for one in OPERATIONS if one.group == self.name)
        transport = "AsyncioTransport" if self.awaited else "BlockingTransport"
        return (
            f'class {self.class_name}:\n    """{GROUPS[self.name]}"""\n\n'
            f"    def __init__(self, transport: {transport}) -> None:\n        self._ask = transport.ask\n\n{methods}"
        )

    def _method(self, operation: Operation) -> str:
        arguments, place = self._place(operation)
        if operation.body is not None:
            kind = self._type(operation.body)
            arguments.append(f"value: {kind}" if operation.body_required else f"value: {kind} | None = None")
        query = {one.name: python_name(one.name) for one in operation.query}
        named = [self._query(one) for one in operation.query]
        if named:
            arguments += ["*", *sorted(named, key=lambda one: "=" in one)]
        answer = "None" if operation.answer is None else self._type(operation.answer)
        if operation.unset:
            answer += " | None"
        parts = [f'"{operation.name}"', _mapping(place), _mapping(query)]
        parts += ["value"] if operation.body is not None else []
        call = f"{'await ' if self.awaited else ''}self._ask({', '.join(parts)})"
        begin = "async def" if self.awaited else "def"
        lines = [
            f"    {begin} {operation.verb}({', '.join(['self', *arguments])}) -> {answer}:",
            f'        """{_documented(operation)}"""',
            *(
                [f"        {call}"]
                if answer == "None"
                else [f"        found: {answer} = {call}", "        return found"]
            ),
        ]
        return "\n".join(lines) + "\n"

    def _place(self, operation: Operation) -> tuple[list[str], dict[str, str]]:
        """The arguments of a path, in which whole names stand for their parts; and how they are handed on."""
        wanted = operation.path_parameters
        hidden = set[str]()
        if "topic" in wanted:
            hidden = {"domain", "tenant", "namespace"}
        elif "namespace" in wanted:
            hidden = {"tenant", "domain"}
        arguments, place, last = list[str](), dict[str, str](), list[str]()
        for name in wanted:
            if name not in hidden:
                arguments.append(f"{python_name(name)}: {self._type(PATH_PARAMETERS[name].type)}")
                place[name] = python_name(name)
        if "domain" in wanted and "topic" not in wanted:
            last = [f'domain: {self._type(PATH_PARAMETERS["domain"].type)} = "persistent"']
            place["domain"] = "domain"
        return [*arguments, *last], place

    def _query(self, parameter: Parameter) -> str:
        kind = self._type(parameter.type)
        return f"{python_name(parameter.name)}: {kind}" + ("" if parameter.required else " | None = None")

    def _type(self, kind: Any) -> str:
        if kind in (PlainText, MetricsText):
            return "str"
        if kind is RawMessage:
            return "PeekedMessage"
        origin = get_origin(kind)
        if origin in _CONTAINERS:
            return f"{_CONTAINERS[origin]}[{', '.join(self._type(one) for one in get_args(kind))}]"
        if origin in (Union, types.UnionType):
            return " | ".join(self._type(one) for one in get_args(kind))
        if origin is Literal:
            return f"Literal[{', '.join(map(repr, get_args(kind)))}]"
        if kind is type(None):
            return "None"
        if issubclass(kind, ApiModel):
            self.models[kind.__name__] = kind.__module__
        return str(kind.__name__)


def python_name(name: str) -> str:
    """A name of JSON as one of Python."""
    return _CAPITAL.sub("_", name.replace("TTL", "Ttl")).lower()


def _mapping(names: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{outside}": {inside}' for outside, inside in names.items()) + "}"


def _documented(operation: Operation) -> str:
    own = " magnetar's own." if operation.own else ""
    rest = f"\n\n        {operation.description}\n        " if operation.description else ""
    return f"{operation.summary}.{own}{rest}"


def module(*, awaited: bool) -> str:
    """The text of one module."""
    groups = [Group(name, awaited=awaited) for name in GROUPS]
    bodies = [group.text() for group in groups]
    imported: dict[str, set[str]] = {}
    for group in groups:
        for name, origin in group.models.items():
            imported.setdefault(origin, set()).add(name)
    transport = "AsyncioTransport" if awaited else "BlockingTransport"
    place = "asyncio_transport" if awaited else "blocking_transport"
    lines = [f"from {origin} import {', '.join(sorted(names))}" for origin, names in sorted(imported.items())]
    return "\n".join(_head(awaited=awaited, lines=lines, transport=transport, place=place)) + "\n\n\n".join(
        [*bodies, _whole(groups, transport, awaited=awaited)]
    )


def _head(*, awaited: bool, lines: list[str], transport: str, place: str) -> Iterator[str]:
    how = "for asyncio" if awaited else "that block"
    yield f'"""The groups of operations {how}; made by ``python -m tools.admin_groups``: change nothing here."""\n'
    yield "from __future__ import annotations\n"
    # a class with a method called list cannot say list[str] any more
    yield "from builtins import dict as Dict\nfrom builtins import list as List"
    yield "from typing import Any, Literal\n"
    yield from lines
    yield f"from magnetar.admin_client.{place} import {transport}"
    yield "from magnetar.admin_client.request import PeekedMessage\n\n\n"


def _whole(groups: list[Group], transport: str, *, awaited: bool) -> str:
    members = "\n".join(
        f'        self.{group.name} = {group.class_name}(transport)\n        """{GROUPS[group.name]}"""'
        for group in groups
    )
    name = "AsyncGroups" if awaited else "Groups"
    return (
        f'class {name}:\n    """All groups of operations."""\n\n'
        f"    def __init__(self, transport: {transport}) -> None:\n{members}\n"
    )


def formatted(text: str) -> str:
    """The text as ruff writes it."""
    command = [
        str(Path(sys.executable).with_name("ruff")),
        "format",
        "--stdin-filename",
        "src/generated_groups.py",
        "-",
    ]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True, cwd=ROOT).stdout


def main() -> None:
    """Write both modules."""
    for name, awaited in MODULES.items():
        (PLACE / f"{name}.py").write_text(formatted(module(awaited=awaited)), "utf-8")


if __name__ == "__main__":
    main()
