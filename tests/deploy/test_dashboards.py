"""Dashboards and alerts, ours and Apache Pulsar's public ones, against the families that a running broker shows."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.coverage.metrics import Shown, families_of, page_after_work
from tools.dashboards import DASHBOARDS, PLACE, text

from magnetar.admin.routes.metrics.broker_families import MEASURED

ROOT = Path(__file__).resolve().parents[2]
RULES = yaml.safe_load((ROOT / "deploy" / "alerts" / "magnetar.rules.yml").read_text("utf-8"))["groups"][0]["rules"]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")
WORDS = {
    "sum", "by", "max", "rate", "increase", "deriv", "and", "or", "label_values", "cluster", "namespace", "auth_method",
    "up", "for", "topic",
}  # fmt: skip
"""Functions and labels of expressions; ``up`` is Prometheus' own."""
OPTIONAL = ("magnetar_tls_", "magnetar_audit_", "magnetar_authorization_")
"""Families of a broker with TLS or authorization, which the one of this test has not."""


@pytest.fixture(scope="module")
def shown() -> dict[str, Shown]:
    return families_of(asyncio.run(page_after_work()))


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each name of an expression with the labels that it is chosen by."""
    plain = re.sub(r"\[[^\]]*\]", "", expression)
    labels = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", plain))
    for name in re.findall(r"[a-zA-Z_]\w*", re.sub(r"\{[^}]*\}", "", re.sub(r'"[^"]*"', "", plain))):
        if name not in WORDS:
            yield name, labels


def has(name: str, labels: set[str], shown: dict[str, Shown]) -> bool:
    for suffix in ("", "_total", "_count", "_sum", "_bucket"):
        found = shown.get(name.removesuffix(suffix)) or shown.get(name)
        if found is not None:
            return labels <= {*found.labels, "cluster", "job", "instance"}
    return name.startswith(OPTIONAL) and name in {family.name for family in MEASURED}


def expressions() -> list[str]:
    found = [rule["expr"] for rule in RULES]
    for word in DASHBOARDS:
        made: Any = json.loads((PLACE / f"{word}.json").read_text("utf-8"))
        found += [target["expr"] for panel in made["panels"] for target in panel["targets"]]
        found += [one["query"] for one in made["templating"]["list"] if one["type"] == "query"]
    return found


def test_every_expression_asks_for_what_is_there(shown: dict[str, Shown]) -> None:
    wrong = [
        (name, expression)
        for expression in expressions()
        for name, labels in asked(expression)
        if not has(name, labels, shown)
    ]
    assert not wrong


def test_an_expression_that_asks_for_something_else_is_found(shown: dict[str, Shown]) -> None:
    for wrong in ("pulsar_nothing > 0", 'sum(pulsar_rate_in{nobody="x"})'):
        assert not all(has(name, labels, shown) for name, labels in asked(wrong))


@pytest.mark.parametrize("word", DASHBOARDS)
def test_dashboards_are_what_the_tool_makes(word: str) -> None:
    assert (PLACE / f"{word}.json").read_text("utf-8") == text(word), "run: python -m tools.dashboards"


def test_every_alert_has_its_runbook() -> None:
    names = [rule["alert"] for rule in RULES]
    assert re.findall(r"^### (\w+)", RUNBOOK, re.MULTILINE) == names
    for rule in RULES:
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_public_dashboards_of_pulsar_show_data(shown: dict[str, Shown]) -> None:
    """``public_panels.tsv``: what the panels of streamnative/apache-pulsar-grafana-dashboard ask for, and which have
    data here."""
    with Path(__file__).with_name("public_panels.tsv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    for row in rows:
        there = has(row["name"], set(row["labels"].split()) if row["data"] == "yes" else set(), shown)
        assert there == (row["data"] == "yes"), row
        assert bool(row["reason"]) != there
    of_messages = [row for row in rows if row["dashboard"] in ("messaging", "topic", "overview")]
    assert sum(row["data"] == "yes" for row in of_messages) > 0.8 * len(of_messages)
