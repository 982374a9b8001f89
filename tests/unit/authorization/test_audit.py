"""Records of the audit log: one line each, whatever stands in the names."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.audit import TEXT_MAX, AuditRecords
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.operations import NamespaceOperation, PolicyName, PolicyOperation, TopicOperation
from magnetar.model.names import NamespaceName, TopicName
from magnetar.runtime.clock import Clock

SPACE = NamespaceName.parse("acme/orders")
TOPIC = SPACE.topic("t")
CLOCK = cast(Clock, SimpleNamespace(now_ms=lambda: 1_790_000_000_123))


def record(caller: Caller, access: Access, decision: Decision, request: str = "PRODUCER") -> tuple[bytes, Any]:
    lines: list[bytes] = []
    AuditRecords(CLOCK, lines.append)(caller, access, decision, request)
    (line,) = lines
    return line, json.loads(line)


def test_a_refusal() -> None:
    caller = Caller("proxy", "alice", "/10.0.0.1:4242", "token")
    access = TopicAccess(TOPIC, TopicOperation.CONSUME, "s")
    _, found = record(caller, access, Decision(False, "no consume", "grant it"), "Subscribe")
    assert found == {
        "time": "2026-09-21T14:13:20.123Z",
        "role": "proxy",
        "original": "alice",
        "address": "/10.0.0.1:4242",
        "method": "token",
        "request": "Subscribe",
        "operation": "CONSUME",
        "object": TOPIC.fqn,
        "subscription": "s",
        "outcome": "refused",
        "reason": "no consume",
    }


def test_every_kind_of_access_has_an_operation_and_an_object() -> None:
    for access, operation, concerned in (
        (ClusterAccess("list tenants"), "list tenants", "cluster"),
        (TenantAccess("acme"), "ADMINISTER", "acme"),
        (NamespaceAccess(SPACE, NamespaceOperation.CLEAR_BACKLOG), "CLEAR_BACKLOG", "acme/orders"),
        (PolicyAccess(SPACE, PolicyName.TTL, PolicyOperation.WRITE), "WRITE TTL", "acme/orders"),
        (PolicyAccess(SPACE, PolicyName.TTL, PolicyOperation.READ, TOPIC), "READ TTL", TOPIC.fqn),
    ):
        _, found = record(Caller("root"), access, Decision(True, "a superuser"))
        assert (found["operation"], found["object"], found["outcome"]) == (operation, concerned, "allowed")
        assert "original" not in found and "subscription" not in found


@given(st.text(), st.text(), st.text(min_size=1))
def test_no_name_forges_a_line(role: str, subscription: str, request: str) -> None:
    topic = TopicName.parse("persistent://acme/orders/" + "a\r\n\x1b[2J\u2028" + "x" * 3000)
    access = TopicAccess(topic, TopicOperation.CONSUME, subscription)
    line, found = record(Caller(role), access, Decision(False, "because\nof\x00that"), request)
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and line.isascii() and line[:-1].decode().isprintable()
    assert found.get("role", "") == role[: TEXT_MAX + 3] and len(line) < 12 * TEXT_MAX * 6


def test_a_role_of_a_megabyte_takes_a_short_line() -> None:
    line, found = record(Caller("\U0001f600" * 1_000_000), TenantAccess("x" * 10_000), Decision(False, "r" * 10_000))
    assert len(line) < 12 * TEXT_MAX * 3 and found["role"].endswith("...")


def test_lost_records_are_a_record() -> None:
    records = AuditRecords(CLOCK, lambda line: None)
    assert json.loads(records.lost(7)) == {
        "time": "2026-09-21T14:13:20.123Z",
        "outcome": "lost",
        "reason": "7 records could not be kept",
    }
