"""A subscription with very many single acknowledgements: its ledger's answers are made in turns."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from magnetar.admin.local_broker.stats import acknowledged_stretches, managed_ledger_info
from magnetar.admin.local_broker.stats.acknowledged_stretches import PER_TURN, stretches
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.cursor import Cursor
from tests.support.loop_turns import turns_of_others
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.subscription_fakes import FakeLog

P = "/admin/v2/persistent/public/default/"
T = "persistent://public/default/t"


async def prepared(broker: RealBroker) -> None:
    """Topic ``t``, of whose four messages subscription ``s`` has acknowledged the second and the fourth."""
    producer = await (await broker.client()).producer(T)
    await broker.ask("PUT", P + "t/subscription/s", "earliest")
    for _ in range(4):
        await producer.receipt(producer.send(b"x" * 10))
    consumer = await (await broker.client()).subscribe(T, "s", c.SubType.Shared)
    consumer.flow(10)
    got = [await consumer.receive() for _ in range(4)]
    for one in (got[1], got[3]):
        await consumer.ack(one.message_id)


def with_holes(count: int) -> Cursor:
    log = FakeLog()
    log.end = 2 * count + 1
    cursor = Cursor(cast("Any", log), 1, "s", -1, None)
    cursor.acknowledge(list(range(1, 2 * count, 2)))
    return cursor


def test_others_have_a_turn_after_each_part() -> None:
    async def main() -> None:
        cursor = with_holes(5 * PER_TURN + 7)
        parts = list[list[tuple[int, int]]]()
        with turns_of_others() as turns:
            async for some in stretches(cursor):
                assert turns.count >= len(parts)
                parts.append(some)
        assert [len(part) for part in parts] == [PER_TURN] * 5 + [7]
        assert [one for part in parts for one in part] == list(cursor.acknowledged_ranges())

    asyncio.run(main())


def test_others_have_a_turn_after_many_that_fill_no_part() -> None:
    """Thousands of subscriptions may each have a little less than a part."""

    async def main() -> None:
        with turns_of_others() as turns:
            for number in range(10):
                cursor = with_holes(PER_TURN - 1)
                assert [len(part) async for part in stretches(cursor)] == [PER_TURN - 1]
                assert turns.count > number

    asyncio.run(main())


def test_what_is_acknowledged_meanwhile_does_no_harm() -> None:
    async def main() -> None:
        cursor = with_holes(20 * PER_TURN)
        seen = list[tuple[int, int]]()
        async for some in stretches(cursor):
            seen += some
            cursor.acknowledge_until(2 * len(seen) + 9_000)  # of a chunk and more that were to come nothing is there
            cursor.acknowledge([seen[-1][1], 2 * len(seen) + 9_500])
        assert all(a < b <= c < d for (a, b), (c, d) in pairwise(seen))
        assert len(seen) > PER_TURN

    asyncio.run(main())


def test_answers_are_the_same_in_parts_and_what_the_metadata_show_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: RealBroker) -> None:
        await prepared(broker)
        whole = [
            (await broker.ask("GET", P + "t/" + path))[1]["cursors"] for path in ("internalStats", "internal-info")
        ]
        monkeypatch.setattr(acknowledged_stretches, "PER_TURN", 1)
        parts = [
            (await broker.ask("GET", P + "t/" + path))[1]["cursors"] for path in ("internalStats", "internal-info")
        ]
        assert parts == whole
        assert len(whole[1]["s"]["individualDeletedMessages"]) == 2
        monkeypatch.setattr(managed_ledger_info, "_STRETCHES_SHOWN", 0)
        (_, bounded) = await broker.ask("GET", P + "t/internal-info")
        assert "individualDeletedMessages" not in bounded["cursors"]["s"]

    run_on_broker(tmp_path, scenario)
