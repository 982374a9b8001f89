"""Every command sends what Apache Pulsar's ``pulsar-admin`` sends for the same words."""

from __future__ import annotations

import shlex

import pytest

from magnetar.cli.admin.table import GROUPS, commands_of
from tests.support.admin_vectors import VECTORS, differs


@pytest.mark.parametrize("group", sorted({vector.words[0] for vector in VECTORS}))
def test_the_requests_are_those_of_pulsar_admin(group: str) -> None:
    mine = [vector for vector in VECTORS if vector.words[0] == group]
    different = {shlex.join(one.words): said for one in mine if (said := differs(one))}
    assert different == {}


def test_every_command_has_vectors_or_is_refused() -> None:
    seen = {tuple(vector.words[:2]) for vector in VECTORS}
    without = [
        f"{group} {name}"
        for group in GROUPS
        for name, command in commands_of(group).items()
        if command.refusal is None and (group, name) not in seen
    ]
    assert without == []
