"""What stands in blocks that are gone had numbers: they are never given again, and that the blocks are gone is said."""

from __future__ import annotations

import pytest

from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.file_names import checkpoint_names, segment_numbers
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log import records
from magnetar.storage.store import LedgerStore
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.virtual_loop import InlineExecutor
from tests.support.store_lives import SMALL, append, disk, killed, numbered, opened, read, run
from tests.support.whole_files import content, replace

Numbers = tuple[int, int, int]


async def born(store: LedgerStore, name: str) -> Numbers:
    """Ids of a new log, its ledger and its cursor; an entry is in it."""
    log = store.open_log(name)
    await append(store, log, b"first")
    cursor = log.open_cursor("s", 0)
    await store.journal.drain()
    return log.id, log.table.ledgers[-1].id, cursor.id


async def filled(files: FaultFileSystem) -> tuple[FaultFileSystem, dict[int, list[Numbers]], int]:
    """Segments that are all replayed, a log born in each; their numbers by segment, and the newest segment."""
    store = opened(files)
    numbers: dict[int, list[Numbers]] = {}
    for i in range(6):
        found = await born(store, f"log {i}")
        numbers.setdefault(store.journal.segment, []).append(found)
        await append(store, store.open_log("a"), *numbered(i, i + 1, 700))
    newest = store.journal.segment
    files = await killed(store, files)
    for name in checkpoint_names(files.names()):
        files.remove(name)
    return files, numbers, newest


async def none_is_given_again(files: FaultFileSystem, numbers: dict[int, list[Numbers]]) -> None:
    checked = verify(files)
    assert checked.damage
    store = opened(files)
    assert store.damage, "and the start says so"
    given = [one for each in numbers.values() for one in each]
    new = await born(store, "new")
    for kind in range(3):
        assert new[kind] > max(one[kind] for one in given), (new, given)
    await store.close()


@pytest.mark.parametrize("left", [0, 20, records.SEGMENT_HEADER_SIZE, "zeros", "header and zeros"])
def test_a_segment_between_others_is_hollow(left: int | str) -> None:
    async def main() -> None:
        files, numbers, newest = await filled(disk())
        whole = content(files, segment_name(newest - 1))
        hollow = {
            "zeros": bytes(len(whole)),
            "header and zeros": whole[: records.SEGMENT_HEADER_SIZE].ljust(len(whole), b"\0"),
        }.get(str(left), whole[: left if isinstance(left, int) else 0])
        # what came later is of older logs only: nothing there says which numbers were given
        replace(files, segment_name(newest), content(files, segment_name(newest))[: records.SEGMENT_HEADER_SIZE])
        replace(files, segment_name(newest - 1), hollow)
        await none_is_given_again(files, numbers)

    run(main())


def test_a_block_is_damaged_in_which_logs_were_born() -> None:
    async def main() -> None:
        files, numbers, newest = await filled(disk())
        data = bytearray(content(files, segment_name(newest)))
        last = data.rfind(records.BLOCK_MAGIC.to_bytes(4, "little"))
        data[records.SEGMENT_HEADER_SIZE + 40 : last] = b"\xff" * (last - records.SEGMENT_HEADER_SIZE - 40)
        replace(files, segment_name(newest), bytes(data))
        await none_is_given_again(files, numbers)

    run(main())


@pytest.mark.parametrize("hollow", [b"", bytes(2000), bytes(9000)], ids=["empty", "zeros", "pages of zeros"])
@pytest.mark.parametrize("begun", [b"", bytes(20)], ids=["empty", "torn"])
def test_the_newest_that_was_begun_is_hollow_and_another_has_no_head_yet(hollow: bytes, begun: bytes) -> None:
    """A kill left the file of the next one, which says nothing of the one before it."""

    async def main() -> None:
        files, numbers, newest = await filled(disk())
        assert newest == segment_numbers(files.names())[-1]
        replace(files, segment_name(newest), hollow)
        replace(files, segment_name(newest + 1), begun)
        await none_is_given_again(files, numbers)

    run(main())


def test_a_hollow_segment_stands_before_one_whose_head_is_damaged() -> None:
    """The blocks are numbered: some are missing before the first that is there."""

    async def main() -> None:
        files, numbers, newest = await filled(disk())
        replace(files, segment_name(newest - 1), b"")
        data = content(files, segment_name(newest))
        replace(files, segment_name(newest), bytes(8) + data[8:])
        words = segment_name(newest - 1)
        lost = f"{words} ends before the segment after it begins"
        assert any(lost in one for one in verify(files).damage), verify(files).damage
        store = opened(files)
        assert any(lost in one for one in store.damage), store.damage
        await store.close()
        del numbers

    run(main())


def test_ids_go_on_two_to_the_24th_further_where_blocks_are_lost() -> None:
    """As docs/disk.md says: more than a segment can have given."""

    async def main() -> None:
        files, numbers, newest = await filled(disk())
        replace(files, segment_name(newest - 1), b"")
        kept = [one for segment, each in numbers.items() if segment != newest - 1 for one in each]
        store = opened(files)
        new = await born(store, "new")
        log, ledger, cursor = (new[kind] - max(one[kind] for one in kept) - (1 << 24) for kind in range(3))
        assert (log, cursor) == (1, 1)
        assert ledger in (1, 2), "the log that lost entries may have opened one before"
        await store.close()

    run(main())


def test_numbers_that_an_earlier_start_skipped_are_no_lost_blocks() -> None:
    """No checkpoint came after that start, and the head of its segment is damaged: only the blocks' numbers speak."""

    async def main() -> None:
        files, _, newest = await filled(disk())
        replace(files, segment_name(newest), b"")
        store = opened(files)
        assert store.damage
        await append(store, store.open_log("a"), b"more")
        files = await killed(store, files)
        for name in checkpoint_names(files.names()):
            files.remove(name)
        data = content(files, segment_name(newest + 1))
        replace(files, segment_name(newest + 1), bytes(8) + data[8:])
        said = verify(files).damage
        store = opened(files)
        for texts in (said, store.damage):
            assert any(segment_name(newest + 1) in one for one in texts)
            assert not any(" blocks between" in one for one in texts)
        await store.close()

    run(main())


def test_numbers_go_on_where_nothing_was_lost() -> None:
    async def main() -> None:
        files, numbers, _ = await filled(disk())
        given = [one for each in numbers.values() for one in each]
        store = opened(files)
        assert store.damage == []
        assert (await born(store, "new"))[0] == max(one[0] for one in given) + 1
        await store.close()

    run(main())


@pytest.mark.parametrize(
    ("what", "skipped"), [("nothing", 0), ("a block", 0), ("all blocks", 1 << 32), ("the file", 1 << 32)]
)
def test_where_it_is_not_known_how_many_blocks_are_lost_more_are_skipped_than_there_can_have_been(
    what: str, skipped: int
) -> None:
    """An old block that comes back, or was never overwritten, would pass for a new one."""

    async def main() -> None:
        files, _, newest = await filled(disk())
        data = content(files, segment_name(newest))
        if what == "a block":
            damaged = bytearray(data)
            last = data.rfind(records.BLOCK_MAGIC.to_bytes(4, "little"))
            damaged[records.SEGMENT_HEADER_SIZE + 40 : last] = b"\xff" * (last - records.SEGMENT_HEADER_SIZE - 40)
            replace(files, segment_name(newest), bytes(damaged))
        elif what == "all blocks":
            replace(files, segment_name(newest), bytes(len(data)))
        elif what == "the file":
            files.remove(segment_name(newest))
            files.sync()
        store = opened(files)
        assert bool(store.damage) is (what != "nothing")
        assert skipped <= store.journal.sequence < skipped + 1000
        await store.close()

    run(main())


def of_a_broker(files: FaultFileSystem, secret: int) -> LedgerStore:
    store = LocalLedgerStore(files, SystemClock(), SMALL, lambda name: InlineExecutor())
    store.belong_to(secret)
    store.open()
    return store


@pytest.mark.parametrize("whose", ["its own", "another broker's"])
def test_a_segment_of_another_brokers_directory_is_named_also_where_no_checkpoint_says_whose_it_is(
    whose: str,
) -> None:
    """The metadata say it; what is in such a segment is none of this broker's messages."""

    async def main() -> None:
        kept: list[FaultFileSystem] = []
        for secret in (111, 222):
            files = disk(secret)
            store = of_a_broker(files, secret)
            await append(store, store.open_log("a"), b"of %d" % secret)
            kept.append(await killed(store, files))
        own, other = kept
        for name in checkpoint_names(own.names()):
            own.remove(name)
        if whose != "its own":
            replace(own, segment_name(1), content(other, segment_name(1)))
        store = of_a_broker(own, 111)
        found = await read(store.open_log("a"))
        if whose == "its own":
            assert (store.damage, found) == ([], [b"of 111"])
        else:
            assert any("segment-0000000000000001 belongs to another broker's directory" in one for one in store.damage)
            assert found == []
        assert store.secret == 111
        await store.close()

    run(main())
