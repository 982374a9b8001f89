"""``docs/permissions.md``, made from the permission table: what each command and each route needs.

``python -m tools.permissions_page > docs/permissions.md`` renews it; `tests/docs/test_permissions_page.py` compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, TypeVar

from magnetar.authorization.operations import NamespaceOperation, TopicOperation
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.authorization.rules import NAMESPACE_ACTIONS, TOPIC_ACTIONS
from magnetar.protocol.commands import AckRun, SendRun
from magnetar.protocol.commands.names import name_of

_Operation = TypeVar("_Operation", bound=Enum)
_RUNS: Final = (AckRun, SendRun)
"""What no client sends by a name of its own."""
_HEAD: Final = """\
# Permissions

<!-- generated: python -m tools.permissions_page > docs/permissions.md -->

What each command and each route needs when `authorizationEnabled=true`: the permission table that the broker itself
asks ([decision 031](decisions/031-authorization.md)). A command that is not in it is refused. Superusers may do
everything, administrators of a tenant everything within it; of a proxy and its original principal both must be allowed.
How to grant, and how to find out why something is refused: [security.md](security.md).

## Operations

An operation on a topic needs one of these actions, granted on its namespace, on the topic itself or, for a partition,
on its partitioned topic. A subscription that is reserved for other roles, or whose name has to begin with the role
(`subscription_auth_mode`), is refused to all but administrators. What the broker keeps for itself (`__change_events`
and the like) only administrators may write; the subscription `__compaction`, the cursor of compaction, others may
look at (PEEK_MESSAGES, GET_SUBSCRIPTIONS), and only administrators read through, move or delete.

| operation on a topic | actions of which one is enough |
|---|---|
"""
_NAMESPACES: Final = """
An operation on a namespace needs an action that is granted on the namespace; grants on topics do not count.

| operation on a namespace | actions of which one is enough |
|---|---|
"""
_ROUTES: Final = """
## Routes of the REST interface

A broker whose table lacks a route does not start. "Asked besides": what only the body of the request or the data tell.

| method | path | needs | asked besides | recorded |
|---|---|---|---|---|
"""
_COMMANDS: Final = """
## Commands of the binary protocol

"Recorded": the audit log has them also when they are allowed; it has every refusal.

| command | needs | asked besides | recorded |
|---|---|---|---|
"""


def permissions_page() -> str:
    """The text of the page."""
    return "".join(
        (
            _HEAD,
            *_operations(TopicOperation, TOPIC_ACTIONS),
            _NAMESPACES,
            *_operations(NamespaceOperation, NAMESPACE_ACTIONS),
            _COMMANDS,
            *_commands(),
            _ROUTES,
            *_routes(),
        )
    )


def _operations(kind: type[_Operation], actions: Mapping[_Operation, tuple[str, ...]]) -> Iterable[str]:
    for operation in kind:
        yield f"| {operation.name} | {', '.join(actions.get(operation, ())) or 'administrators of the tenant only'} |\n"


def _commands() -> Iterable[str]:
    rows = {_wire_name(kind): row for kind, row in COMMAND_PERMISSIONS.items() if kind not in _RUNS}
    for name in sorted(rows):
        row = rows[name]
        yield f"| {name} | {row.needs} | {row.inside} | {'yes' if row.recorded else ''} |\n"


def _routes() -> Iterable[str]:
    """One line for the methods of a path that need the same."""
    lines: dict[tuple[str, str, str, str], list[str]] = {}
    for (method, path), row in sorted(ROUTE_PERMISSIONS.items(), key=lambda item: (item[0][1], item[0][0])):
        lines.setdefault((path, row.needs, row.inside, "yes" if row.recorded else ""), []).append(method)
    for (path, needs, inside, recorded), methods in lines.items():
        yield f"| {' '.join(methods)} | `{path}` | {needs} | {inside} | {recorded} |\n"


def _wire_name(kind: type) -> str:
    """``GET_LAST_MESSAGE_ID`` for :class:`CommandGetLastMessageId`, as the protocol's definition names its types."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", name_of(kind)).upper()
    return {"LOOKUP_TOPIC": "LOOKUP", "PARTITIONED_TOPIC_METADATA": "PARTITIONED_METADATA"}.get(
        name, "(a long ACK or REDELIVER)" if name.startswith("UNPARSED") else name
    )


if __name__ == "__main__":
    sys.stdout.write(permissions_page())
