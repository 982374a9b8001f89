"""The tables of commands: package data, one file for each group, read when the group is asked for.

A line that begins with ``command`` says what a command is; the lines below it, which begin with ``argument`` or
``flag``, are its arguments and flags in order. Columns:

- ``command``: name, METHOD, path, query, body, how the answer is printed, marks, what it does
- ``argument``: name, kind, ``required`` or empty, marks, what it is
- ``flag``: names with commas between, kind, ``required`` or empty, default, marks, what it is

Path, query and body are templates (``magnetar.cli.admin.request``). A path that begins with ``!`` names a function, and
one that begins with ``?`` is the reason for which the command is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final

GROUPS: Final = {
    "bookies": "Racks of bookies: a broker with an embedded store has none.",
    "broker-stats": "What the broker measures.",
    "brokers": "The broker: its health, its settings, what it owns.",
    "clusters": "Names and addresses of clusters, as data for clients.",
    "documents": "Pulsar's generator of documents for pulsar-admin.",
    "functions": "Functions, which this broker does not run.",
    "functions-worker": "Workers of functions, which this broker does not run.",
    "namespaces": "Namespaces and their policies.",
    "non-persistent": "Deprecated: topics in memory; use topics.",
    "ns-isolation-policy": "Which brokers serve which namespaces, as data.",
    "packages": "Packages of functions, which this broker does not keep.",
    "persistent": "Deprecated: topics on disk; use topics.",
    "proxy-stats": "What Pulsar's proxy measures.",
    "resource-quotas": "Expected load of namespace bundles.",
    "resourcegroups": "Limits that namespaces share.",
    "schemas": "Schemas of topics.",
    "sinks": "Connectors out of topics, which this broker does not run.",
    "sources": "Connectors into topics, which this broker does not run.",
    "tenants": "Tenants: who owns namespaces.",
    "topicPolicies": "Policies of one topic.",
    "topics": "Topics, their subscriptions and messages.",
    "transactions": "Transactions: what is open, and its state.",
}
HIDDEN_GROUPS: Final = {"persistent", "non-persistent", "properties"}
ALIASES: Final = {"source": "sources", "sink": "sinks", "properties": "tenants", "topic-policies": "topicPolicies"}
"""Other names of groups."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One word of a command that is no flag."""

    name: str
    kind: str
    required: bool
    said: str


@dataclass(frozen=True, slots=True)
class CommandFlag:
    """One flag with all its names; ``key`` is the name that templates and functions use."""

    names: tuple[str, ...]
    kind: str
    required: bool
    default: str
    hidden: bool
    said: str

    @property
    def key(self) -> str:
        return max(self.names, key=len).lstrip("-")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of ``pulsar-admin``: what it sends, what it prints, and what it takes."""

    group: str
    name: str
    method: str
    path: str
    query: str
    body: str
    printed: str
    marks: frozenset[str]
    said: str
    arguments: list[Argument] = field(default_factory=list)
    flags: list[CommandFlag] = field(default_factory=list)

    @property
    def function(self) -> str | None:
        """The name of the function that carries the command out, if it is more than one request."""
        return self.path[1:] if self.path.startswith("!") else None

    @property
    def refusal(self) -> str | None:
        """Why the command is refused, if it is."""
        return self.path[1:] if self.path.startswith("?") else None

    @property
    def hidden(self) -> bool:
        return "hidden" in self.marks

    def word(self, key: str) -> str:
        """What help calls the flag or argument of that key."""
        return next((max(flag.names, key=len) for flag in self.flags if flag.key == key), key.upper())


@cache
def commands_of(group: str) -> dict[str, Command]:
    """Return the commands of a group by their names and aliases, in order."""
    text = (files("magnetar.cli.admin") / "tables" / f"{group}.tsv").read_text("utf-8")
    found: dict[str, Command] = {}
    latest: Command | None = None
    for line in text.splitlines():
        kind, _, rest = line.partition("\t")
        cells = rest.split("\t")
        if kind == "command":
            name, method, path, query, body, printed, marks, said = cells
            latest = Command(group, name, method, path, query, body, printed, frozenset(marks.split()), said)
            found[name] = latest
            for mark in latest.marks:
                if mark.startswith("alias:"):
                    found[mark.removeprefix("alias:")] = latest
        elif kind == "argument" and latest is not None:
            name, value, required, said = cells
            latest.arguments.append(Argument(name, value, required == "required", said))
        elif kind == "flag" and latest is not None:
            names, value, required, default, marks, said = cells
            flag = CommandFlag(tuple(names.split(",")), value, required == "required", default, "hidden" in marks, said)
            latest.flags.append(flag)
        elif line and not line.startswith("#"):
            raise ValueError(f"tables/{group}.tsv: {line[:80]!r} is no row")
    return found
