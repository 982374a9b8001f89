"""Ledgers offloaded by Spark are adopted by a real broker, read back, and refused where they must be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.rest import Rest
from magnetar.jobs.offload import offload, plan, planned
from magnetar.jobs.reader.unit_reader import Access, units
from magnetar.model.errors import InvalidValueError
from tests.support.offloaded_topic import SMALL_LEDGERS, T, keep, ledgers, publish, value, values
from tests.support.real_broker import real_broker
from tests.unit.jobs.stores import stored

pytestmark = pytest.mark.spark


def test_a_job_offloads_what_the_broker_then_reads(spark: Any, tmp_path: Path) -> None:
    options = {**SMALL_LEDGERS, "offloadUrl": f"file://{tmp_path}/copies"}

    async def story() -> None:
        async with asyncio.timeout(200), real_broker(tmp_path / "data", **options) as broker:
            rest = Rest(broker.node.broker.service.web_service_url)
            await keep(broker)
            await publish(broker, 0, 90)
            directory = tmp_path / "data"
            work, left = await asyncio.to_thread(plan, rest, directory, [T])
            assert len(work) == 4 and not left
            assert [one.entries for one in planned(work)] == [20] * 4
            with pytest.raises(InvalidValueError):
                await asyncio.to_thread(plan, rest, directory, [T], "nowhere")
            wrong = work[1]._replace(info=work[0].info, pieces=work[0].pieces, name=work[1].name)
            wrong = wrong._replace(info=wrong.info._replace(id=work[1].info.id))
            done = await asyncio.to_thread(offload, spark, [wrong])
            assert "is not" in done[0].refused or "no" in done[0].refused
            assert not list((tmp_path / "copies").rglob("*.parquet")), "what was refused is deleted"
            done = await asyncio.to_thread(offload, spark, work)
            assert [one.refused for one in done] == [""] * 4
            assert [one.ledger for one in done] == [one.info.id for one in work]
            assert [one["copy"] is not None for one in await ledgers(broker)] == [True] * 4 + [False]
            assert (await asyncio.to_thread(plan, rest, directory, [T])) == ([], [])
            again = await asyncio.to_thread(offload, spark, work[:1])
            assert not again[0].refused, "a task that runs twice finds its object"
            assert await broker.node.broker.upkeep.offload() == 4
            assert await values(broker, 90) == [value(i) for i in range(90)]
            access = Access(url=broker.node.broker.service.service_url, directory=str(directory))
            found = await asyncio.to_thread(units, access, T)
            rows, missing = await asyncio.to_thread(stored, access, found)
            assert len(rows) == 90 and not missing

    asyncio.run(story())
