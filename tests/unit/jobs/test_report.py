"""A report computed from given facts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.read_position import ReadPosition
from magnetar.jobs.report import (
    AppliedPolicies,
    LedgerFacts,
    TopicFacts,
    WhatIf,
    compressed,
    report_rows,
    sizes_before,
    topic_report,
)  # fmt: skip

NOW = 1_000_000_000_000
LEDGERS = (
    LedgerFacts(3, 10, 1000, NOW - 9_000_000),
    LedgerFacts(5, 20, 2000, NOW - 600_000),
    LedgerFacts(8, 4, 400, NOW - 60_000),
)


def facts(mark: str, policies: AppliedPolicies, **acked: str) -> TopicFacts:
    cursors = {"slow": {"markDeletePosition": mark, **acked}, "quick": {"markDeletePosition": "8:3"}}
    return TopicFacts("t", LEDGERS, cursors, policies, 0.25, None)


def test_backlog_and_what_retention_keeps() -> None:
    found = topic_report(facts("5:4", AppliedPolicies(60, -1, None)), WhatIf(), NOW, 2e6)
    assert (found.size, found.entries, found.subscriptions, found.slowest) == (3400, 34, 2, "slow")
    assert (found.kept, found.backlog) == (1500, 1900)
    assert found.until == "2001-09-09T02:46:40+00:00"
    assert found.oldest_ms == NOW - 9_000_000
    assert found.freed == 0
    assert found.cost == 3400 / 1e9 * 2e6
    assert topic_report(facts("5:4", AppliedPolicies(-1, -1, None)), WhatIf(), NOW, 0).until == "for ever"
    assert (
        topic_report(facts("5:4", AppliedPolicies(-1, 7, None)), WhatIf(), NOW, 0).until == "there are more than 7 MB"
    )
    assert topic_report(facts("5:4", AppliedPolicies(0, 0, None)), WhatIf(), NOW, 0).until == "at the next trim"
    assert topic_report(facts("3:-1", AppliedPolicies(0, 0, None)), WhatIf(), NOW, 0).until == ""
    holes = facts("3:-1", AppliedPolicies(0, 0, None), individuallyDeletedMessages="[(3:-1..3:9]]")
    assert topic_report(holes, WhatIf(), NOW, 0).kept == 1000


def test_what_other_policies_free() -> None:
    def freed(mark: str, what_if: WhatIf) -> int:
        return topic_report(facts(mark, AppliedPolicies(-1, -1, None)), what_if, NOW, 0).freed

    assert freed("8:3", WhatIf(retention_minutes=5)) == 1000  # all of it is older than the next ledger's first message
    assert freed("8:3", WhatIf(retention_minutes=0)) == 3000
    assert freed("8:3", WhatIf(retention_minutes=60)) == 0
    assert freed("3:5", WhatIf(retention_minutes=0)) == 0  # the backlog holds it
    assert freed("3:5", WhatIf(retention_minutes=0, ttl_seconds=300)) == 1000
    assert freed("3:5", WhatIf(retention_minutes=0, ttl_seconds=30)) == 3000
    assert freed("8:3", WhatIf(ttl_seconds=1)) == 0  # retention is for ever


@given(st.integers(0, 12), st.integers(-1, 40))
def test_sizes_before_a_place(ledger: int, entry: int) -> None:
    found = sizes_before(LEDGERS, ReadPosition(ledger, entry))
    entries = sum(one.entries for one in LEDGERS if one.id < ledger)
    entries += sum(min(max(entry, 0), one.entries) for one in LEDGERS if one.id == ledger)
    assert found == 100 * entries


def test_compressibility_and_table() -> None:
    assert compressed([], "zstd") is None
    small = compressed([b"a" * 1000] * 10, "zstd")
    assert small is not None
    assert small < 0.01
    rows = report_rows("a/b", [topic_report(facts("8:3", AppliedPolicies(0, 0, None)), WhatIf(), NOW, 0)])
    assert rows[-1][:3] == ("all of a/b", "3.4 kB", 34)
    assert report_rows("a/b", [])[-1][1] == "0 B"
