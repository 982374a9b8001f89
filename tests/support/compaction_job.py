"""A topic whose compacted view a job computes: its entries, one life of the broker, the job's steps without Spark."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from magnetar.client.rest import Rest
from magnetar.jobs.compaction import job
from magnetar.jobs.compaction.entry_columns import key_events
from magnetar.jobs.compaction.job import CompactionJobPlan, plan, unit_columns, write_unit
from magnetar.jobs.compaction.key_table import KeyTable
from magnetar.jobs.compaction.rules import CHUNKED, KEY, ChunkState, LastEvent, latest
from magnetar.protocol.compression import CompressionType
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from tests.support.compaction_messages import Message, batch, single
from tests.support.offloaded_topic import SMALL_LEDGERS
from tests.support.real_broker import TOPIC, RealBroker, Scenario, real_broker

T = "persistent://public/default/t"
URL = f"{TOPIC}/t"


def life(path: Path, scenario: Scenario) -> Any:
    """Run ``scenario`` on a broker whose data lies in ``path / data``; return its result."""

    async def run() -> Any:
        options = {**SMALL_LEDGERS, "offloadUrl": f"file://{path}/place"}
        async with asyncio.timeout(200), real_broker(path / "data", **options) as broker:
            return await scenario(broker)

    return asyncio.run(run())


def entry_of(number: int) -> bytes:
    """Keys come again, some are deleted, some messages come in batches, some have no key."""
    key = f"k{number * 7 % 13}"
    if number % 5 == 0:
        inside = [Message(f"k{(number + i) % 17}", b"%d-%d" % (number, i)) for i in range(3)]
        return batch([*inside, Message(None, b"keyless")], CompressionType.ZSTD)
    return single(Message(None if number % 11 == 3 else key, b"" if number % 6 == 1 else b"%d" % number))


async def publish(broker: RealBroker, start: int, stop: int) -> None:
    """Append entries to the log itself, which takes any bytes."""
    log = broker.node.broker.service.topics[T].log
    for number in range(start, stop):
        log.append(entry_of(number), 4 if number % 5 == 0 else 1, _NOBODY)
    await broker.node.broker.store.journal.drain()


class _Nobody:
    """A producer that takes no receipts."""

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
    """The steps that Spark does, in this process."""
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
    """Places that stay with their units, and the state of chunks, from the rows of ``together`` units at a time."""
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
    """The view of the broker's own run up to the same horizon; no entry may follow it."""
    await broker.ask("PUT", f"{URL}/compaction")
    compactor = broker.node.broker.service.topics[T].compactor
    assert compactor is not None
    await compactor.wait()
    return await view_of(broker)


def rows_of(keys: KeyTable) -> list[LastEvent]:
    """Return the rows of a key table, taken in small portions."""
    out = []
    for some in keys.portions(3):
        names, ends = some.names.tobytes(), some.ends.tolist()
        texts = [names[start:end] for start, end in pairwise(ends)]
        out += [LastEvent(KEY, *row, None) for row in zip(texts, some.places.tolist(), some.over.tolist(), strict=True)]
    return out
