"""Records of the audit log: one line each, whatever stands in the names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
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
from magnetar.authorization.audit import (
    ALLOWED_ASKER_BYTES,
    ALLOWED_ASKERS_MAX,
    ALLOWED_BYTES,
    ASKER_BYTES,
    ASKERS_MAX,
    REFUSED_BYTES,
    TEXT_MAX,
    WINDOW_MS,
    AuditRecords,
)
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


class Minutes:
    """Records with a clock that is set by hand."""

    def __init__(self, superusers: tuple[str, ...] = ()) -> None:
        self.now = 1_790_000_000_123
        self.lines: list[bytes] = []
        self.calls: list[tuple[float, Callable[[], None]]] = []
        clock = cast(Clock, SimpleNamespace(now_ms=lambda: self.now))
        self.records = AuditRecords(
            clock,
            self.lines.append,
            lambda seconds, end: self.calls.append((seconds, end)),
            lambda caller: caller.role in superusers,
        )

    def ask(self, caller: Caller, allowed: bool = False, times: int = 1, reason: str = "no consume") -> None:
        for _ in range(times):
            self.records(caller, TopicAccess(TOPIC, TopicOperation.LOOKUP), Decision(allowed, reason), "Lookup")

    def found(self) -> list[Any]:
        """What was recorded since it was asked last."""
        lines, self.lines[:] = [*self.lines], []
        return [json.loads(line) for line in lines]


def test_refusals_of_one_role_are_bounded_and_counted_and_others_are_recorded() -> None:
    minutes = Minutes()
    minutes.ask(Caller("mallory", "somebody", "/10.0.0.1:1"), times=100_000)
    size = sum(map(len, minutes.lines))
    assert ASKER_BYTES <= size < ASKER_BYTES + 1000
    recorded = len(minutes.found())
    minutes.ask(Caller("mallory", "else", "/10.0.0.2:2"))
    assert not minutes.found(), "the same role"
    minutes.ask(Caller("mallory"), allowed=True, times=3)
    minutes.ask(Caller("alice"))
    assert [(one["role"], one["outcome"]) for one in minutes.found()] == [("mallory", "allowed")] * 3 + [
        ("alice", "refused")
    ]
    ((seconds, end),) = minutes.calls
    end()
    assert not minutes.found(), "the minute is not over"
    minutes.now += int(seconds * 1000)
    end()
    (more,) = minutes.found()
    assert (more["role"], more["outcome"]) == ("mallory", "refused") and "original" not in more
    assert more["reason"] == f"and {100_001 - recorded} more refusals: {100_001 - recorded} LOOKUP"
    minutes.ask(Caller("mallory"))
    assert len(minutes.found()) == 1 and len(minutes.calls) == 2


def test_refused_logins_are_bounded_by_host_and_a_minute_ends_with_the_next_record() -> None:
    minutes = Minutes()
    for port in range(1000):
        minutes.ask(Caller(None, None, f"/10.0.0.1:{port}"))
    recorded = len(minutes.found())
    assert 10 < recorded < 200
    minutes.ask(Caller(None, None, "/10.0.0.2:7"))
    assert len(minutes.found()) == 1
    minutes.now += WINDOW_MS
    minutes.ask(Caller("root"), allowed=True)
    more, root = minutes.found()
    assert more["address"] == "/10.0.0.1" and more["reason"].startswith(f"and {1000 - recorded} more refusals: ")
    assert root["role"] == "root"


def test_refusals_of_many_are_bounded_together_in_the_file_and_in_memory() -> None:
    minutes = Minutes()
    for number in range(5000):
        minutes.ask(Caller(None, None, f"/10.0.{number >> 8}.{number & 255}:1"), reason="r" * 400)
    assert REFUSED_BYTES <= sum(map(len, minutes.lines)) < REFUSED_BYTES + 1000
    recorded = len(minutes.found())
    assert len(minutes.records._refused.askers) == ASKERS_MAX + 1
    minutes.ask(Caller("root"), allowed=True)
    assert len(minutes.found()) == 1
    minutes.records.end_window()
    told = minutes.found()
    assert len(told) <= ASKERS_MAX + 1 and "more refusals of others: " in told[-1]["reason"]
    assert recorded + sum(int(one["reason"].split()[1]) for one in told) == 5000


def test_what_one_role_is_allowed_is_bounded_and_counted_by_operation() -> None:
    """Otherwise who has one grant could push everything else out of the files that are kept."""
    minutes = Minutes(superusers=("root",))
    minutes.ask(Caller("alice"), allowed=True, times=20_000)
    size = sum(map(len, minutes.lines))
    assert ALLOWED_ASKER_BYTES <= size < ALLOWED_ASKER_BYTES + 1000
    recorded = len(minutes.found())
    unsubscribe = TopicAccess(TOPIC, TopicOperation.UNSUBSCRIBE, "s")
    minutes.records(Caller("alice"), unsubscribe, Decision(True, "granted"), "Unsubscribe")
    assert not minutes.found()
    minutes.ask(Caller("alice"))
    minutes.ask(Caller("bob"), allowed=True)
    minutes.ask(Caller("root"), allowed=True, times=2000)
    outcomes = Counter((one["role"], one["outcome"]) for one in minutes.found())
    assert outcomes == {("alice", "refused"): 1, ("bob", "allowed"): 1, ("root", "allowed"): 2000}
    minutes.now += WINDOW_MS
    minutes.ask(Caller("bob"))
    more, _ = minutes.found()
    left_out = 20_000 - recorded
    assert (more["role"], more["outcome"]) == ("alice", "allowed")
    assert more["reason"] == f"and {left_out + 1} more allowed requests: {left_out} LOOKUP, 1 UNSUBSCRIBE"


def test_what_many_roles_are_allowed_is_bounded_together() -> None:
    minutes = Minutes()
    for number in range(2 * ALLOWED_ASKERS_MAX):
        minutes.ask(Caller(f"role-{number}"), allowed=True, times=2, reason="r" * 400)
    assert ALLOWED_BYTES <= sum(map(len, minutes.lines)) < ALLOWED_BYTES + 1000
    recorded = len(minutes.found())
    assert len(minutes.records._allowed.askers) == ALLOWED_ASKERS_MAX + 1
    minutes.ask(Caller("stranger"))
    assert len(minutes.found()) == 1, "refusals have room of their own"
    minutes.records.end_window()
    assert recorded + sum(int(one["reason"].split()[1]) for one in minutes.found()) == 4 * ALLOWED_ASKERS_MAX


def test_operations_are_counted_in_bounded_memory() -> None:
    minutes = Minutes()
    minutes.ask(Caller("mallory"), times=1000)
    for number in range(1000):
        minutes.records(Caller("mallory"), ClusterAccess(f"thing {number}"), Decision(False, "no"), "GET")
    (share,) = minutes.records._refused.askers.values()
    assert len(share.more) <= 21 and share.more["others"] > 900


def test_a_clock_that_goes_back_ends_the_minute() -> None:
    minutes = Minutes()
    minutes.ask(Caller("mallory"), times=1000)
    minutes.found()
    minutes.now -= 3_600_000
    minutes.ask(Caller("mallory"))
    more, again = minutes.found()
    assert more["reason"].startswith("and ") and again["reason"] == "no consume"
