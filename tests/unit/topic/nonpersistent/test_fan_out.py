"""The way through a non-persistent topic: how much may be on it, what goes together, who is told what (rule 13.3)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from magnetar.broker.topic.nonpersistent.fan_out import GROUP_ENTRIES_MAX, FanOut, FanOutGroup, InFlight
from magnetar.broker.topic.ports import Done
from magnetar.broker.topic.publish.producer import PendingEntry


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_one_more_than_the_limit_is_on_its_way_and_whoever_is_refused_is_not_counted(limit: int) -> None:
    flying = InFlight(limit)
    assert [flying.enter("a") for _ in range(limit + 4)] == [True] * (limit + 1) + [False] * 3
    assert len(flying) == limit + 1
    assert flying.enter("b"), "another connection has entries of its own"
    flying.leave("a", 1)
    assert [flying.enter("a"), flying.enter("a")] == [True, False]
    flying.leave("a", limit + 1)
    flying.leave("b", 1)
    assert (len(flying), flying._entries) == (0, {}), "a connection that is gone leaves nothing"
    assert flying.enter("a")


class Client:
    """A producer, its connection, and what it was answered."""

    def __init__(self, name: str) -> None:
        self.session = name
        self.open = True
        self.msg_in = self.bytes_in = self.msg_dropped = self.gone = 0
        self.answered: list[tuple[int, bool]] = []

    @property
    def connection(self) -> Client:
        return self

    def unstored(self, entries: list[PendingEntry], *, dropped: bool) -> None:
        self.answered += [(entry.sequence_id, dropped) for entry in entries]

    def dropped(self, count: int) -> None:
        self.gone += count


def taking(groups: list[FanOutGroup]) -> Callable[[FanOutGroup, Done], None]:
    """Deliver at once."""

    def deliver(group: FanOutGroup, done: Done) -> None:
        groups.append(group)
        done()

    return deliver


@pytest.mark.parametrize("seed", range(8))
def test_each_group_goes_out_whole_and_everybody_is_answered_in_order(seed: int) -> None:
    """Against a list: what was over the limit of its connection is dropped and says so, the rest is delivered once."""

    async def main() -> None:
        rng = random.Random(seed)
        groups: list[FanOutGroup] = []
        limit = rng.choice((0, 2, 10))
        flying = InFlight(limit)
        out = FanOut("t", flying, taking(groups))
        clients = [Client("a"), Client("b"), Client("c")]
        sent = 0
        wanted: dict[str, list[tuple[int, bool]]] = {client.session: [] for client in clients}
        for _ in range(30):
            entries, counts, flight, asked = [], [], Counter[str](), Counter[str]()
            size = rng.choice((0, 1, 5, 20))
            for _ in range(size):
                client = rng.choice(clients[: rng.choice((1, 3))])
                messages, entry = rng.choice((1, 1, 7)), bytes(rng.choice((0, 10)))
                dropped = flight[client.session] > limit
                sent += 1
                out.append(entry, messages, PendingEntry(cast("Any", client), sent, 0))
                asked[client.session] += 1
                wanted[client.session].append((sent, dropped))
                if not dropped:
                    flight[client.session] += 1
                    entries.append(entry)
                    counts.append(messages)
            assert not groups
            clients[2].open = rng.random() < 0.8
            before = {client.session: (client.gone, len(client.answered)) for client in clients}
            if rng.random() < 0.5:
                out.barrier(lambda: None)
            else:
                await asyncio.sleep(0)
            out.flush()
            whole = sum(counts)
            shown = None if whole == len(counts) else counts
            assert groups == ([FanOutGroup(entries, shown, whole, sum(map(len, entries)))] if entries else [])
            groups.clear()
            for client in clients:
                gone, answered = before[client.session]
                news = wanted[client.session][len(wanted[client.session]) - asked[client.session] :]
                assert client.answered[answered:] == (news if client.open else [])
                assert client.gone - gone == (0 if client.open else len(news))
            assert len(flying) == 0
        assert [client.msg_in + client.msg_dropped > 0 for client in clients] == [True] * 3

    asyncio.run(main())


def test_a_full_group_does_not_wait_for_the_end_of_the_turn() -> None:
    async def main() -> None:
        groups: list[FanOutGroup] = []
        out = FanOut("t", InFlight(1 << 30), taking(groups))
        client = Client("a")
        for i in range(GROUP_ENTRIES_MAX):
            assert not groups
            out.append(b"x", 1, PendingEntry(cast("Any", client), i, 0))
        assert len(groups) == 1
        for size in ((1 << 20) - 1, 1):
            assert len(groups) == 1
            out.append(bytes(size), 1, PendingEntry(cast("Any", client), 0, 0))
        assert [len(group.entries) for group in groups] == [GROUP_ENTRIES_MAX, 2]
        out.append(b"x", 1, PendingEntry(cast("Any", client), 1, 0))
        out.close()
        out.append(b"y", 1, PendingEntry(cast("Any", client), 2, 0))
        await asyncio.sleep(0)
        assert [len(group.entries) for group in groups] == [GROUP_ENTRIES_MAX, 2, 1], "closed: nothing passes any more"
        assert (client.msg_in, client.bytes_in) == (GROUP_ENTRIES_MAX + 4, GROUP_ENTRIES_MAX + (1 << 20) + 2)

    asyncio.run(main())


def test_entries_of_a_run_are_a_message_each() -> None:
    async def main() -> None:
        groups: list[FanOutGroup] = []
        out = FanOut("t", InFlight(1 << 30), taking(groups))
        client = Client("a")
        tags = [PendingEntry(cast("Any", client), number, 0) for number in range(3)]
        out.append_all([b"a", b"bc", b"d"], tags)
        await asyncio.sleep(0)
        assert groups == [FanOutGroup([b"a", b"bc", b"d"], None, 3, 4)]
        assert (client.msg_in, client.bytes_in) == (3, 4)
        assert client.answered == [(0, False), (1, False), (2, False)]

    asyncio.run(main())


def test_behind_a_group_that_takes_its_time_everything_waits_in_order() -> None:
    """With very many subscriptions: receipts follow their group, the next one begins after it, answers keep their
    place, and what is too much meanwhile is dropped."""

    async def main() -> None:
        under_way: list[tuple[FanOutGroup, Done]] = []
        out = FanOut("t", InFlight(1 << 30), lambda group, done: under_way.append((group, done)))
        client, told = Client("a"), list[str]()

        def send(number: int, size: int = 1) -> None:
            out.append(bytes(size), 1, PendingEntry(cast("Any", client), number, 0))

        send(0)
        out.flush()
        out.barrier(lambda: told.append("first"))
        for number in range(1, GROUP_ENTRIES_MAX + 10):
            send(number)
        out.barrier(lambda: told.append("second"))
        await asyncio.sleep(0)
        assert (len(under_way), client.answered, told) == (1, [], [])
        under_way.pop()[1]()
        assert client.answered == [(0, False)], "no receipt before everybody had the message"
        assert told == []
        await asyncio.sleep(0)
        [(group, done)] = under_way
        under_way.clear()
        assert len(group.entries) == GROUP_ENTRIES_MAX + 9
        send(1_000, 16 << 20)
        send(1_001)
        out.close()
        done()
        assert client.answered[-1] == (GROUP_ENTRIES_MAX + 9, False)
        assert told == ["first", "second"]
        await asyncio.sleep(0)
        assert client.answered[-2:] == [(1_000, False), (1_001, True)]
        assert (under_way, len(out._in_flight)) == ([], 0)

    asyncio.run(main())
