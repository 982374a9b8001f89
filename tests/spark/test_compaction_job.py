"""Compaction by Spark, from the topic to the view in the broker, equals the broker's own."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from magnetar.jobs.compaction.job import compact
from tests.support.compaction_job import URL, by_broker, computed, first_half, life, planned, view_of
from tests.support.real_broker import RealBroker

pytestmark = pytest.mark.spark


def test_a_spark_job_makes_the_broker_s_own_view(spark: Any, tmp_path: Path) -> None:
    async def story(broker: RealBroker) -> None:
        assert (await broker.ask("GET", f"{URL}/internalStats"))[0] == 200
        work = await planned(broker, tmp_path / "ours")
        done = await asyncio.to_thread(compact, spark, work)
        view = await view_of(broker)
        assert done.entries == len(view) - 1
        assert done.messages > done.kept > 10
        assert not list((tmp_path / "ours" / "place").rglob("*.parquet")), "the files were handed over and are gone"
        rows = await asyncio.to_thread(computed, work)
        assert (sum(row["messages"] for row in rows), sum(row["bytes"] for row in rows)) == (done.kept, done.bytes)
        seen.append(view)

    async def alone(broker: RealBroker) -> None:
        assert (await broker.ask("GET", f"{URL}/internalStats"))[0] == 200
        seen.append(await by_broker(broker))

    seen: list[list[bytes]] = []
    life(tmp_path / "ours", first_half)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    life(tmp_path / "ours", story)
    life(tmp_path / "theirs", alone)
    assert seen[0] == seen[1]
