"""Every command sends what Apache Pulsar's ``pulsar-admin`` sends for the same words."""

from __future__ import annotations

import re
import shlex
from urllib.parse import parse_qsl

import pytest

from magnetar.admin.routes.not_implemented import known_routes, refusal_of
from magnetar.admin_api.operations.catalogue import OPERATIONS
from magnetar.cli.admin.table import GROUPS, commands_of
from tests.support.admin_recorder import run_admin
from tests.support.admin_vectors import VECTORS, differs


@pytest.mark.parametrize("group", sorted({vector.words[0] for vector in VECTORS}))
def test_the_requests_are_those_of_pulsar_admin(group: str) -> None:
    mine = [vector for vector in VECTORS if vector.words[0] == group]
    different = {shlex.join(one.words): said for one in mine if (said := differs(one))}
    assert different == {}


NOT_READ = {
    "deleteSchema": "a schema goes with its topic",
    "createLocalTopicOnly": "there is one cluster", "updateLocalTopicOnly": "there is one cluster",
    "destinationBroker": "there is one broker",
    "metadata": "ledgers have no metadata of BookKeeper",
    "lowWaterMarks": "there is one coordinator, whose mark is always shown",
    "segmentStats": "transactions need no snapshots",
    "messageTTL": "of a DELETE, which removes whatever it is",
    "applied": "of a namespace's schemaValidationEnforced, which the broker answers alike",
    "group": "placing bookies is refused",
}  # fmt: skip
"""Parameters that pulsar-admin sends as well, and why a broker of ours reads none of them there."""


def test_every_request_is_an_operation_of_the_description() -> None:
    """What the command line sends stands in /openapi.json, or among the refusals: method, path, names in the query."""
    described = [(one.method, _form(one.path), {name.name for name in one.query}) for one in OPERATIONS]
    sent = {(method, path, query) for vector in VECTORS for method, path, query, *_ in run_admin(vector.words).requests}
    sent = {one for one in sent if not one[1].startswith("/proxy-stats/")}  # a proxy's
    assert len(sent) > 500
    unknown = []
    for method, path, query in sorted(sent):
        names = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
        names -= NOT_READ.keys()
        if method == "POST" and path.endswith("/partitions"):
            names.discard("force")  # partitions that a client made on its own do not stand in the way
        if any(method == one and form.fullmatch(path) and names <= known for one, form, known in described):
            continue
        if not any(form.matches(path) and refusal_of(method, template) for form, template, _ in known_routes()):
            unknown.append(f"{method} {path}?{query}")
    assert unknown == [], "\n".join(unknown)


def _form(path: str) -> re.Pattern[str]:
    """A path whose parameters are any words."""
    return re.compile("[^/]+".join(map(re.escape, re.split(r"\{\w+\}", path))) + "/?")


def test_every_command_has_vectors_or_is_refused() -> None:
    seen = {tuple(vector.words[:2]) for vector in VECTORS}
    without = [
        f"{group} {name}"
        for group in GROUPS
        for name, command in commands_of(group).items()
        if command.refusal is None and (group, name) not in seen
    ]
    assert without == []
