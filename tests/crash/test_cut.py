"""Files cut at every byte, bits flipped, files removed: what survives is exactly what must, and everything is named.

One small directory is built, with the durable state noted after every write. Each test copies it, harms the copy,
opens it, compares, goes on writing in a second life and reads everything in a third. Promises: a torn end costs only
writes whose success was never reported; damage in the middle costs the entries in it, which are named and kept as
``quarantine-…``; nothing is ever deleted; the open after the repair finds nothing to complain about.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.replay.replayed_logs import NAMELESS
from magnetar.storage.store import LedgerStore
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.directory_image import Files, restored, snapshot
from tests.support.loop_turns import settled
from tests.support.store_lives import SMALL, append, disk, opened, read, run


class Durable(NamedTuple):
    """State after a write that was answered."""

    segment: int
    length: int
    logs: dict[str, tuple[list[bytes], dict[str, tuple[int, list[tuple[int, int]]]]]]
    """Per log, by name: entries; cursors with mark-delete and acknowledged ranges above it."""


class Built(NamedTuple):
    """A directory and its history."""

    files: Files
    steps: list[Durable]


def cursors_of(managed: ManagedLedger) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    return {name: (c.mark_delete, list(c.acked.ranges())) for name, c in managed.cursors.items()}


def build(*, close: bool) -> Built:
    """Two logs, cursors with holes, several segments; the last writes are in a segment without a checkpoint."""

    async def main() -> Built:
        files = disk()
        store = opened(files)
        steps: list[Durable] = []
        entries: dict[str, list[bytes]] = {"a": [], "b": []}

        async def step() -> None:
            await store.journal.drain()
            await settled()
            logs = {m.name: (list(entries[m.name]), cursors_of(m)) for m in store._logs.values()}
            steps.append(Durable(store.journal.segment, store.journal.length, logs))

        a, b = store.open_log("a"), store.open_log("b")
        await step()
        cursor = a.open_cursor("s", 0)
        await step()
        for i in range(26):
            entry = b"a%d " % i * (1 + i % 7)
            entries["a"].append(entry)
            a.append(entry, 1 + i % 3, None)
            if i % 3 == 0:
                entries["b"].append(b"b%d" % i)
                b.append(b"b%d" % i, 1, None)
            await step()
            if i % 4 == 1:
                cursor.acknowledge((i - 1,), lambda: None)
                await step()
            if i == 13:
                b.open_cursor("t", 2)
                await step()
        if close:
            await store.close()
        return Built(snapshot(files), steps)

    return run(main())


@pytest.fixture(scope="module")
def killed() -> Built:
    return build(close=False)


@pytest.fixture(scope="module")
def closed() -> Built:
    return build(close=True)


async def state(store: LedgerStore) -> dict[str, tuple[list[bytes], dict[str, tuple[int, list[tuple[int, int]]]]]]:
    return {m.name: (await read(m), cursors_of(m)) for m in store._logs.values()}


async def lives_on(files: FaultFileSystem) -> None:
    """A second life finds nothing wrong and writes on; a third reads everything."""
    store = opened(files)
    assert store.damage == []
    before = {name: managed.end for name, managed in store._logs.items()}
    extra = [b"second life %d" % i for i in range(12)]
    managed = store.open_log("a")
    await append(store, managed, *extra)
    files = files.reopened()
    store = opened(files)
    assert store.damage == []
    managed = store.open_log("a")
    assert await read(managed, before.get("a", 0)) == extra
    positions = [managed.position(o) for o in range(managed.first, managed.end)]
    assert positions == sorted(set(positions))
    await store.close()


def newest(files: Files) -> int:
    return segment_numbers(files)[-1]


def test_the_newest_segment_cut_at_every_byte_is_its_longest_durable_prefix(killed: Built) -> None:
    number = newest(killed.files)
    name = segment_name(number)
    whole = killed.files[name]
    inside = [s for s in killed.steps if s.segment == number]
    before = [s for s in killed.steps if s.segment < number][-1]
    # the checkpoint of the segment before was made when this one's first group was durable: no crash is older
    assert len(inside) > 3

    async def main() -> None:
        for size in range(inside[0].length, len(whole)):
            files = restored({**killed.files, name: whole[:size]})
            store = opened(files)
            wanted = [before, *[s for s in inside if s.length <= size]][-1]
            assert store.damage == [], size
            assert await state(store) == wanted.logs, size
            torn = [n for n in files.names() if n.startswith("quarantine")]
            rest = whole[wanted.length : size].rstrip(b"\0")
            assert bool(torn) == bool(rest), size
            if torn:
                kept = files.open(torn[0])
                assert kept.read(0, kept.size()) == rest
            files = files.reopened()
            if size % 7 == 0:
                await lives_on(files)
            else:
                assert opened(files).damage == []

    run(main())


def test_a_tail_of_zeros_and_a_tail_of_noise_cost_nothing(killed: Built) -> None:
    name = segment_name(newest(killed.files))

    async def main() -> None:
        for tail in (b"\0" * 5000, random.Random(1).randbytes(700), killed.files[name][-60:-3], b"MBLK"):
            files = restored({**killed.files, name: killed.files[name] + tail})
            store = opened(files)
            assert store.damage == []
            assert await state(store) == killed.steps[-1].logs
            await lives_on(files.reopened())

    run(main())


def test_a_new_segment_cut_inside_its_header_or_empty_costs_nothing(killed: Built) -> None:
    number = newest(killed.files) + 1

    async def main() -> None:
        for size in range(49):
            files = restored({**killed.files, segment_name(number): killed.files[segment_name(number - 1)][:size]})
            store = opened(files)
            assert await state(store) == killed.steps[-1].logs
            await lives_on(files.reopened())

    run(main())


def survivors(wanted: list[bytes], managed: ManagedLedger) -> Iterator[tuple[int, bytes]]:
    return zip(range(managed.first, managed.end), wanted[managed.first :], strict=False)


async def readable(managed: ManagedLedger, wanted: list[bytes]) -> int:
    """Read entry by entry: each is right or refused, none is wrong; how many were refused."""
    refused = 0
    for ordinal, entry in survivors(wanted, managed):
        try:
            found = await one(managed, ordinal)
        except PersistenceError:
            refused += 1
        else:
            assert found == entry, ordinal
    return refused


async def one(managed: ManagedLedger, ordinal: int) -> bytes:
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    managed.read(ordinal, 1, 1, future.set_result)
    found = await future
    if isinstance(found, Exception):
        raise found
    assert found.first == ordinal  # type: ignore[attr-defined]  # a Run
    return found.entries[0]  # type: ignore[attr-defined,no-any-return]


def harmed(built: Built, name: str, harm: Callable[[bytes], bytes]) -> FaultFileSystem:
    return restored({**built.files, name: harm(built.files[name])})


def cut(size: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:size]


def flip(at: int, bit: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_flipped_bit_in_a_segment_costs_at_most_its_block_and_is_named(killed: Built) -> None:
    rng = random.Random(7)
    last = killed.steps[-1].logs
    number = newest(killed.files)
    replayed = segment_name(number)
    inside = [s for s in killed.steps if s.segment == number]

    async def main() -> None:
        for at in range(len(killed.files[replayed])):
            files = harmed(killed, replayed, flip(at, rng.randrange(8)))
            store = opened(files)
            if at >= inside[-2].length:
                assert not store.damage  # the last block: no one can tell it from a torn one
            elif at < 40 or at >= 48:
                assert store.damage, at
            for name, managed in store._logs.items():
                assert await readable(managed, last[name][0]) <= 4, at
            assert at < 48 or [n for n in files.names() if n.startswith("quarantine")], at
            if at % 9 == 0:
                files = files.reopened()
                store = opened(files)
                assert store.damage == []
                await append(store, store.open_log("a"), b"new")
                assert await one(store.open_log("a"), store.open_log("a").end - 1) == b"new"

    run(main())


def test_a_flipped_bit_in_a_sealed_segment_refuses_its_entries_and_no_others(closed: Built) -> None:
    rng = random.Random(8)
    last = closed.steps[-1].logs

    async def main() -> None:
        for number in segment_numbers(closed.files):
            name = segment_name(number)
            for at in rng.sample(range(len(closed.files[name])), 60):
                store = opened(harmed(closed, name, flip(at, rng.randrange(8))))
                assert store.damage == []  # start-up reads no sealed segment
                for log, managed in store._logs.items():
                    assert await readable(managed, last[log][0]) <= 1

    run(main())


def test_a_flipped_bit_anywhere_in_a_full_replay_costs_its_block_only_and_new_entries_are_delivered(
    killed: Built,
) -> None:
    """No checkpoint, so that also the births of logs, ledgers and cursors lie in blocks that get damaged."""
    rng = random.Random(11)
    last = killed.steps[-1].logs
    names = {NAMELESS.format(1): "a", NAMELESS.format(2): "b"}
    without = {n: d for n, d in killed.files.items() if not n.startswith("checkpoint")}

    async def main() -> None:
        for number in segment_numbers(without)[:-1]:
            name = segment_name(number)
            for at in rng.sample(range(len(without[name])), 120):
                files = restored({**without, name: flip(at, rng.randrange(8))(without[name])})
                store = opened(files)
                assert store.damage, (number, at)
                for log, managed in store._logs.items():
                    await readable(managed, last[names.get(log, log)][0])
                    kept = range(managed.first, managed.end)
                    assert [managed.ordinal(managed.position(o)) for o in kept] == list(kept), (number, at)
                managed = store.open_log("a")
                cursors = list(managed.cursors.values())
                end = managed.end
                await append(store, managed, b"new 1", b"new 2")
                for cursor in cursors:
                    assert not cursor.acknowledged(end), (number, at)
                    assert not cursor.acknowledged(end + 1)
                files = files.reopened()
                store = opened(files)
                assert store.damage == []
                assert await read(store.open_log("a"), end) == [b"new 1", b"new 2"]

    run(main())


def test_indexes_cut_anywhere_or_with_any_bit_flipped_are_made_anew(closed: Built) -> None:
    rng = random.Random(9)
    name = segment_name(2) + ".index"
    data = closed.files[name]

    async def main() -> None:
        harms: list[Callable[[bytes], bytes]] = [cut(n) for n in range(len(data))]
        harms += [flip(at, rng.randrange(8)) for at in range(len(data))]
        for harm in harms:
            files = harmed(closed, name, harm)
            store = opened(files)
            assert await state(store) == closed.steps[-1].logs
            assert snapshot(files)[name] == data

    run(main())


def test_checkpoints_cut_anywhere_or_with_any_bit_flipped_give_way_to_the_one_before(closed: Built) -> None:
    rng = random.Random(10)
    name = sorted(n for n in closed.files if n.startswith("checkpoint"))[-1]
    data = closed.files[name]

    async def main() -> None:
        harms: list[Callable[[bytes], bytes]] = [cut(n) for n in range(0, len(data), 3)]
        harms += [flip(at, rng.randrange(8)) for at in range(0, len(data), 2)]
        for i, harm in enumerate(harms):
            files = harmed(closed, name, harm)
            store = opened(files)
            assert store.damage == []
            assert await state(store) == closed.steps[-1].logs
            assert f"quarantine-{name}" in files.names()
            if i % 9 == 0:
                await lives_on(files.reopened())

    run(main())


def test_a_missing_checkpoint_is_replaced_by_reading_more(killed: Built, closed: Built) -> None:
    async def main() -> None:
        for built in (killed, closed):
            names = sorted(n for n in built.files if n.startswith("checkpoint"))
            for missing in (names[-1:], names):
                files = restored({n: d for n, d in built.files.items() if n not in missing})
                store = opened(files)
                assert store.damage == []
                assert await state(store) == built.steps[-1].logs
                await lives_on(files.reopened())

    run(main())


def test_without_any_checkpoint_and_without_the_first_segment_nothing_is_guessed(closed: Built) -> None:
    files = restored({n: d for n, d in closed.files.items() if not n.startswith("checkpoint") and n != segment_name(1)})
    before = snapshot(files)

    async def main() -> None:
        with pytest.raises(PersistenceError, match="cannot be rebuilt"):
            opened(files)
        assert snapshot(files) == before

    run(main())


def test_half_written_files_are_ignored(closed: Built) -> None:
    async def main() -> None:
        half = {
            f"{n}.new": d[: len(d) // 2] for n, d in closed.files.items() if n.startswith(("checkpoint", "segment"))
        }
        files = restored({**closed.files, **half})
        store = opened(files)
        assert await state(store) == closed.steps[-1].logs
        await store.close()
        await lives_on(files)

    run(main())


def test_the_small_settings_make_several_segments(killed: Built) -> None:
    assert len(segment_numbers(killed.files)) >= 4
    assert SMALL.segment_bytes == 1024
