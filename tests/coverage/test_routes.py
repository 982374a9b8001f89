"""Every route of Apache Pulsar is served by a running broker, or refused for a reason that is written down."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from tools.coverage.routes import LAST, SERVED, WRONG, asked, judged

from tests.support.standalone import ports, standalone

SERVED_OF_V1 = ("GET", "/admin/namespaces/{cluster}/antiAffinity/{group}")
"""Pulsar's tools ask it, so it is served beside the one of v2."""


def documented() -> list[tuple[str, str]]:
    """Method and path of every route of Apache Pulsar, by the table alone."""
    rows = files("magnetar.admin.routes").joinpath("pulsar_routes.tsv").read_text("utf-8").splitlines()[1:]
    return sorted((method, path) for path, methods in (row.split("\t") for row in rows) for method in methods.split())


def reasoned(kind: str) -> list[tuple[str, str]]:
    """Method and path of every route that the table of reasons calls that."""
    rows = files("magnetar.admin.routes").joinpath("refused_routes.tsv").read_text("utf-8").splitlines()[1:]
    reasons = [row.split("\t") for row in rows]

    def kind_of(method: str, path: str) -> str | None:
        for template, methods, word, _ in reasons:
            same = path.startswith(template[:-1]) if template.endswith("*") else path == template
            if same and (methods == "*" or method in methods.split()):
                return word
        return None

    return [route for route in documented() if kind_of(*route) == kind and route != SERVED_OF_V1]


def test_a_running_broker_serves_or_refuses_every_route(tmp_path: Path) -> None:
    with standalone(tmp_path) as (process, line):
        answers = list(asked(ports(line)[1]))
        # the last one asked it to stop, and it does so cleanly
        assert (answers[-1].method, answers[-1].template) == LAST
        assert process.wait(30) == 0
    wrong = sorted(f"{answer.method} {answer.template}" for answer in answers if answer.kind == WRONG)
    assert wrong == []
    counted = Counter(answer.kind for answer in answers)
    assert sorted((answer.method, answer.template) for answer in answers) == documented()
    assert counted["not applicable"] == len(reasoned("not applicable")) > 0
    assert counted["refused"] == len(reasoned("refused"))
    assert counted[SERVED] == len(answers) - counted["not applicable"] - counted["refused"] - len(wrong)


@pytest.mark.parametrize(
    ("template", "status", "reason", "kind"),
    [
        ("/admin/v2/clusters", 200, None, SERVED),
        ("/admin/v2/clusters", 404, "Cluster does not exist", SERVED),
        ("/admin/v2/clusters", 405, "a non-persistent topic has no such thing", SERVED),
        ("/admin/v2/clusters", 501, "nobody said why", WRONG),
        ("/admin/v2/clusters", 404, "Not Found", WRONG),
        ("/admin/v2/clusters", 405, "this path takes POST only", WRONG),
        ("/admin/v2/clusters", 500, "a bug", WRONG),
        ("/admin/v2/clusters", 0, "no answer: timed out", WRONG),
        ("/admin/v2/functions/connectors", 501, "named", "not applicable"),
        ("/admin/v2/functions/connectors", 200, None, WRONG),
    ],
)
def test_what_an_answer_means(template: str, status: int, reason: str | None, kind: str) -> None:
    body = b"" if reason is None else json.dumps({"reason": reason}).encode()
    assert judged("GET", template, status, body).kind == kind
