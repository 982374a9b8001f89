"""Every family of /metrics that applies moves after what it counts has happened, and is as Apache Pulsar has it."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tools.coverage.metrics import differences, families_of, find, known
from tools.coverage.metrics_work import SETTINGS, STAGES, Work

from magnetar.admin.routes.metrics.broker_families import MEASURED
from magnetar.app.node import Node
from magnetar.config.settings import Settings

_OF_OTHER_TESTS = {
    "pulsar_*latency_le_*": "test_write_stats, test_distributions: each bucket",
    "pulsar_*latency_overflow": "the same",
    "pulsar_entry_size_le_*": "the same",
    "pulsar_ml_*_OVERFLOW": "the same",
    "pulsar_compaction_failed_count": "test_compaction",
    "pulsar_authentication_*": "test_authentication",
    "pulsar_schema_*_failed*": "test_counted_failures",
    "pulsar_ml_AddEntryErrors": "test_counted_failures",
    "pulsar_ml_ReadEntriesErrors": "test_counted_failures",
    "pulsar_ml_cursor_persistLedgerErrors": "test_counted_failures",
    "topic_load_failed": "test_counted_failures",
    "pulsar_topic_load_failed_count": "test_counted_failures",
    "pulsar_ml_cache_pendingreads_matched": "test_counted_failures",
    "pulsar_subscription_in_replay": "test_counted_failures",
    "pulsar_storage_offloaded_size": "test_offload",
    "brk_ledgeroffloader_*": "test_offload",
    "pulsar_broker_pending_bytes_to_dispatch": "tests of the bytes that connections hold",
    "pulsar_version_info": "stays as it is",
    "process_start_time_seconds": "stays as it is",
    "process_max_fds": "stays as it is",
    "process_*_memory_bytes": "test_process_figures",
    "pulsar_lb_memory_usage": "test_process_figures: the load of the host",
}


def samples(page: str) -> dict[str, frozenset[str]]:
    """The samples of each name, whatever their family."""
    found: dict[str, set[str]] = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            found.setdefault(re.split(r"[{ ]", line, maxsplit=1)[0], set()).add(line)
    return {name: frozenset(lines) for name, lines in found.items()}


def moved(family: str, before: dict[str, frozenset[str]], after: dict[str, frozenset[str]]) -> bool:
    """Whether a sample of the family is new or has another number, which is not 0."""
    names = [family, *(family + suffix for suffix in ("_total", "_count", "_sum", "_bucket"))]
    new = [line for name in names for line in after.get(name, frozenset()) - before.get(name, frozenset())]
    return any(float(line.rpartition(" ")[2]) not in (0, math.nan) for line in new)


def wanted(patterns: str) -> Iterator[str]:
    names = [family.name for family in known() if family.verdict == "served"]
    names += [family.name for family in MEASURED]
    for pattern in patterns.split():
        found = [name for name in names if fnmatch(name, pattern)]
        yield from found or [pattern]


def test_each_kind_of_work_moves_its_families_and_none_is_left_out(tmp_path: Path) -> None:
    async def scenario() -> str:
        node = Node(tmp_path / "data", Settings(**SETTINGS, offloadUrl=f"file://{tmp_path}/copies"))
        await node.start()
        work = Work(node)
        try:
            await node.complete()
            await work.scraped()
            page = await work.scraped()
            for stage in STAGES:
                before = samples(page)
                await stage.work(work)
                page = await work.scraped()
                after = samples(page)
                still = [family for family in wanted(stage.moves) if not moved(family, before, after)]
                assert not still, f"{stage.name} does not move {still}"
            return page
        finally:
            await work.close()
            await node.stop()

    page = asyncio.run(scenario())
    assert list(differences(families_of(page))) == []
    seen = {family for stage in STAGES for family in wanted(stage.moves)}
    for family in known():
        if family.verdict == "served" and family.name not in seen:
            assert any(fnmatch(family.name, pattern) for pattern in _OF_OTHER_TESTS), f"nobody sees {family.name} move"


def test_every_family_says_what_it_is() -> None:
    for family in MEASURED:
        assert family.head.startswith(f"# HELP {family.name}")
        assert family.help.endswith(".")


def test_what_is_wrong_is_found() -> None:
    """A page without a family, with another type, or with a family that nobody knows, is wrong."""
    shown = families_of('# TYPE pulsar_rate_in counter\npulsar_rate_in{cluster="c"} 1\n# TYPE pulsar_new gauge\n')
    wrong = list(differences(shown))
    assert "pulsar_rate_in: counter, in Apache Pulsar gauge" in wrong
    assert "pulsar_rate_out: not shown" in wrong
    assert "pulsar_new: Apache Pulsar has no such family" in wrong
    assert find("pulsar_rate_out", shown) is None
