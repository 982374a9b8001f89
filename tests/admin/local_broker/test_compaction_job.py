"""A view that a job computed: taken over by a real broker, byte for byte what it would have made, or refused."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from magnetar.jobs.compaction import job
from magnetar.jobs.compaction.entry_columns import key_events
from magnetar.jobs.compaction.job import CompactionJobPlan, plan, unit_columns, write_unit
from magnetar.jobs.compaction.rules import CHUNKED, KEY, ChunkState, LastEvent, latest
from magnetar.jobs.rest import Rest, RestRefusedError
from magnetar.model.errors import ConflictError
from magnetar.protocol.compression import CompressionType
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from tests.admin.local_broker.test_offload import SMALL_LEDGERS, finished
from tests.support.real_broker import TOPIC, RealBroker, real_broker
from tests.unit.compaction.test_survivors import Message, batch, single
from tests.unit.jobs.test_compaction_rules import rows_of

T = "persistent://public/default/t"
URL = f"{TOPIC}/t"
Story = Callable[[RealBroker], Awaitable[Any]]


def life(path: Path, story: Story) -> Any:
    """One life of a broker whose data lies in ``path / data``."""

    async def run() -> Any:
        options = {**SMALL_LEDGERS, "offloadUrl": f"file://{path}/place"}
        async with asyncio.timeout(200), real_broker(path / "data", **options) as broker:
            return await story(broker)

    return asyncio.run(run())


def entry_of(number: int) -> bytes:
    """Keys come again, some are deleted, some messages come in batches, some have no key."""
    key = f"k{number * 7 % 13}"
    if number % 5 == 0:
        inside = [Message(f"k{(number + i) % 17}", b"%d-%d" % (number, i)) for i in range(3)]
        return batch([*inside, Message(None, b"keyless")], CompressionType.ZSTD)
    return single(Message(None if number % 11 == 3 else key, b"" if number % 6 == 1 else b"%d" % number))


async def publish(broker: RealBroker, start: int, stop: int) -> None:
    """Through the log itself: any entry at all."""
    log = broker.node.broker.service.topics[T].log
    for number in range(start, stop):
        log.append(entry_of(number), 4 if number % 5 == 0 else 1, _NOBODY)
    await broker.node.broker.store.journal.drain()


class _Nobody:
    """A producer that wants no receipts."""

    open = False
    msg_in = bytes_in = 0

    class sink:  # as a producer's
        @staticmethod
        def dropped(count: int) -> None: ...


_NOBODY = (_Nobody, 0, 0)


async def view_of(broker: RealBroker) -> list[bytes]:
    """The view's own log, packed entries and counts as they are."""
    compactor = broker.node.broker.service.topics[T].compactor
    assert compactor is not None and compactor.view is not None
    return [str(compactor.view.facts._replace(ledger=0)).encode(), *await everything(compactor.view.log)]


async def everything(log: ManagedLedger) -> list[bytes]:
    out: list[bytes] = []
    while (at := log.first + len(out)) < log.end:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        log.read(at, 1000, 1 << 20, answer.set_result)
        run = await answer
        counts = run.counts or [1] * len(run.entries)
        out += [b"%d " % count + entry for entry, count in zip(run.entries, counts, strict=True)]
    return out


async def planned(broker: RealBroker, path: Path) -> CompactionJobPlan:
    rest = Rest(broker.node.broker.service.web_service_url)
    made = await asyncio.to_thread(plan, rest, path / "data", T)
    assert made is not None
    return made


def computed(work: CompactionJobPlan) -> list[dict[str, Any]]:
    """What Spark does, in one place."""
    said: list[LastEvent] = []
    unit_of: dict[int, int] = {}
    for number in range(len(work.units)):
        keys, collector = key_events(unit_columns(work, number))
        found = [*rows_of(keys), *collector.events()]
        unit_of |= dict.fromkeys((event.place for event in found), number)
        said += found
    places, chunk_state = latest(said)
    for together in (1, 3, len(work.units)):
        assert summed_up(work, together) == ({place: unit_of[place] for place in places}, chunk_state)
    wanted = np.array(sorted(places), np.int64)
    return [write_unit(work, number, wanted, chunk_state) for number in range(len(work.units))]


def summed_up(work: CompactionJobPlan, together: int) -> tuple[dict[int, int], ChunkState]:
    """Places that stay and their units, and the rest, from rows as they travel: of so many units together."""
    last: dict[tuple[int, bytes], tuple[int, int]] = {}
    for first in range(0, len(work.units), together):
        some = job.UnitGroup(work)
        for number in range(first, min(first + together, len(work.units))):
            some.add(number)
        for rows in some.rows():
            for kind, name, code, unit, _ in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                before = last.get((kind, name), (code, unit))
                last[kind, name] = max(code, before[0]), max(unit, before[1])
    keys = {name: at for (kind, name), at in last.items() if kind == KEY}
    stays = {code >> 2: unit for code, unit in keys.values() if not code & 2}
    in_chunks = [(name, code >> 2) for name, (code, _) in keys.items() if code & 1]
    ended = [(name, at[0] >> 2) for (kind, name), at in last.items() if kind == job._ENDED]
    chunks = [name for (kind, name), at in last.items() if kind == CHUNKED and not at[0] & 2]
    return stays, ChunkState(frozenset(chunks), job._last_in_chunks(in_chunks, ended))


def handed_over(work: CompactionJobPlan, rows: list[dict[str, Any]]) -> None:
    job._hand_over(work, [row for row in rows if row["entries"]], 0)


async def first_half(broker: RealBroker) -> None:
    assert (await broker.ask("PUT", URL))[0] == 204
    await publish(broker, 0, 90)


async def by_broker(broker: RealBroker) -> list[bytes]:
    """Compacted by itself up to the same horizon: nothing may follow that."""
    await broker.ask("PUT", f"{URL}/compaction")
    compactor = broker.node.broker.service.topics[T].compactor
    assert compactor is not None
    await compactor.wait()
    return await view_of(broker)


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


def test_what_is_refused(tmp_path: Path) -> None:
    async def story(broker: RealBroker) -> None:
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

    life(tmp_path, story)
