"""Checksums cover records of every size, to the last byte, in every way that reads them; two checkpoints are kept."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import checkpoint_names
from magnetar.storage.backends.journal_backend import Chunk, segment_name
from magnetar.storage.log import checkpoint, records
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.verify import verify
from tests.support.simulated_store import Disk, publish, read_all, simulated

SIZES = (1, 100, 4_095, 4_096, 4_097, 8_192, 65_536, 1_000_000, 5_000_000)


def block(size: int) -> tuple[bytes, records.BlockHeader]:
    """A whole block with one extent of one entry."""
    parts: list[Chunk] = []
    length = records.extent((1, 1, 0, 0, 0), 5, [b"x" * size], None, size, parts)
    data = records.block_header(1, length, 7, 9) + b"".join(parts)
    found = records.parse_block_header(data, 0)
    assert found is not None
    return data, found


@pytest.mark.parametrize("size", SIZES)
def test_a_flip_anywhere_in_a_record_of_any_size_is_noticed(size: int) -> None:
    data, header = block(size)
    at = records.BLOCK_HEADER_SIZE
    assert records.read_extent(data, at).entries == [b"x" * size]
    assert len(records.parse_block(data, 0, header)) == 1
    inside = {offset for offset in (0, size // 3, 4_094, 4_095, 4_096, 8_191, 65_535, size - 1) if offset < size}
    for offset in inside:
        damaged = bytearray(data)
        damaged[len(data) - size + offset] ^= 4
        with pytest.raises(records.RecordError, match="checksum"):
            records.parse_block(bytes(damaged), 0, header)
        with pytest.raises(records.RecordError, match="checksum"):
            records.read_extent(bytes(damaged), at)
        with pytest.raises(records.RecordError, match="checksum"):
            records.parse_record(bytes(damaged), at)


@simulated
async def test_a_flip_in_a_large_entry_on_disk_is_noticed_by_reader_start_and_verify(disk: Disk) -> None:
    disk.settings = StoreSettings(cache_bytes=1, reserve_bytes=0)
    for size in (4_096, 100_000, 1_500_000):
        store = disk.open()
        log = store.open_log(f"of {size}")
        log.append(b"y" * size, 1, None)
        await store.journal.drain()
        await publish(store, store.open_log("behind"), store.open_log("behind").end, store.open_log("behind").end + 1)
        number = store.journal.segment
        assert await read_all(log) == [b"y" * size]
        file = disk.files.open(segment_name(number))
        at = file.read(0, file.size()).index(b"y" * 64) + size - 2
        disk.files.flip_bit(segment_name(number), at)
        store.cache.clear(log.cached_runs)
        with pytest.raises(PersistenceError):
            await read_all(log)
        disk.kill()
        assert verify(disk.files).damage
        again = disk.open()
        assert again.damage
        await again.close()
        disk.files = disk.files.reopened()


@simulated
async def test_two_checkpoints_are_kept_and_either_is_enough(disk: Disk) -> None:
    disk.settings = StoreSettings(segment_bytes=400, reserve_bytes=0)
    store = disk.open()
    log = store.open_log("a")
    kept: list[str] = []
    for count in range(0, 40, 4):
        await publish(store, log, count, count + 4)
        await asyncio.sleep(1)
        kept = checkpoint_names(disk.files.names())
        assert len(kept) <= checkpoint.KEPT == 2
    assert len(kept) == 2
    disk.kill()
    disk.files.flip_bit(kept[1], 40)
    store = disk.open()
    assert await read_all(store.open_log("a")) == [b"entry %d" % i for i in range(40)]
    assert any(name.startswith("quarantine-checkpoint-") for name in disk.files.names())
