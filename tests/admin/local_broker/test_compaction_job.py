"""A view that a job computed: taken over by a real broker, byte for byte what it would have made, or refused."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.rest import Rest, RestRefusedError
from magnetar.jobs.compaction.job import CompactionJobPlan, plan
from magnetar.model.errors import ConflictError
from tests.support.compaction_job import (
    URL,
    T,
    by_broker,
    computed,
    first_half,
    handed_over,
    life,
    planned,
    publish,
    view_of,
)
from tests.support.offloaded_topic import finished
from tests.support.real_broker import RealBroker


def test_the_job_makes_the_broker_s_own_view_twice(tmp_path: Path) -> None:
    """The first run reads the log, the second the view and the log after it; ledgers in between are offloaded."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    async def by_job(broker: RealBroker) -> list[bytes]:
        # loading a topic begins a ledger, so all that was published before lies in closed ones
        assert (await broker.ask("GET", f"{URL}/internalStats"))[0] == 200
        work = await planned(broker, ours)
        assert work.horizon == broker.node.broker.service.topics[T].log.end
        rows = await asyncio.to_thread(computed, work)
        await asyncio.to_thread(handed_over, work, rows)
        return await view_of(broker)

    async def loaded(broker: RealBroker) -> list[bytes]:
        assert (await broker.ask("GET", f"{URL}/internalStats"))[0] == 200
        return await by_broker(broker)

    async def more(broker: RealBroker) -> None:
        assert (await broker.ask("GET", f"{URL}/internalStats"))[0] == 200
        await publish(broker, 90, 200)
        await broker.ask("PUT", f"{URL}/offload", {"ledgerId": 1 << 60, "entryId": 0})
        await finished(broker)
        await broker.node.broker.upkeep.offload()

    life(ours, first_half)
    shutil.copytree(ours, theirs)
    assert life(ours, by_job) == life(theirs, loaded)
    for path in (ours, theirs):
        life(path, more)
    again = life(ours, by_job)
    assert again == life(theirs, loaded)
    assert len(again) > 10


def test_a_view_that_does_not_fit_the_topic_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await first_half(broker)
        work = await planned(broker, tmp_path)
        assert work.horizon == 80, "the open ledger is left out"
        rows = [row for row in await asyncio.to_thread(computed, work) if row["entries"]]

        async def refused(reason: str, work: CompactionJobPlan, rows: list[dict[str, Any]]) -> None:
            with pytest.raises((RestRefusedError, ConflictError), match=reason):
                await asyncio.to_thread(handed_over, work, rows)

        await refused("expected", work, [{**rows[0], "digest": 7}])
        await refused("is not the copy", work, [{**rows[0], "digest": "0" * 64}])
        await refused("to be kept", work, [rows[-1], rows[0]])
        await refused("to be kept", work._replace(horizon=10), rows)
        await refused("cannot be compacted up to", work._replace(horizon=1000), rows)
        compactor = broker.node.broker.service.topics[T].compactor
        assert compactor is not None and compactor.view is None and compactor.stats.failures == 3
        mine = await by_broker(broker)
        await refused("was compacted since the job began", work, rows)
        assert await view_of(broker) == mine
        rest = Rest(broker.node.broker.service.web_service_url)
        assert await asyncio.to_thread(plan, rest, tmp_path / "data", T) is None, "there is nothing to do"
        names = [name for name in broker.node.broker.store.names() if name.startswith("internal://compacted/")]
        assert len(names) == 1, "what was refused is gone"

    life(tmp_path, scenario)
