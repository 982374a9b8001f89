"""Copies written from segments in columns are the broker's own files, and are read back like any piece."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from magnetar.jobs.reader.ledger_copies import publish_times, write_copy
from magnetar.jobs.reader.topic_ledgers import read_directory
from magnetar.jobs.reader.unit_reader import Access, Unit, units
from magnetar.offload.digest import LedgerDigest
from magnetar.offload.format import NO_TIME
from magnetar.offload.object_store import object_store_at
from magnetar.protocol.entries import EntryMetadata, build_entry, publish_time
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from tests.unit.jobs.stores import T, message, open_store, stored


def entry(i: int) -> bytes:
    return message(i, 30 + i % 7 * 40)


async def filled(directory: Path, count: int) -> tuple[LedgerStore, ManagedLedger, list[bytes]]:
    """Entries of one to three messages, some groups large."""
    store = open_store(directory)
    log = store.open_log(T)
    sent = [entry(i) for i in range(count)]
    for i, one in enumerate(sent):
        log.append(one, 1 + i % 3, None)
        if i % 4 == 0:
            await store.journal.drain()
    await store.journal.drain()
    return store, log, sent


async def recorded(log: ManagedLedger, ledger: int, copy: Offload) -> None:
    answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    log.record_offload(ledger, copy, lambda: answer.set_result(None), answer.set_exception)
    await answer


def test_a_job_writes_what_the_broker_would_and_reads_it_back(tmp_path: Path) -> None:
    async def run() -> None:
        store, log, sent = await filled(tmp_path, 57)
        (tmp_path / "copies").mkdir()
        place = object_store_at(f"file://{tmp_path}/copies")
        found = read_directory(tmp_path)
        seen = found.logs[T]
        copies = []
        for info in seen.ledgers[:-2]:
            pieces = tuple(piece for piece in seen.pieces if piece.ledger == info.id)
            facts, size = write_copy(found.path, pieces, info, T, place, f"x/{info.id}.parquet")
            digest = LedgerDigest()
            numbers = range(info.base, info.base + info.entries)
            digest.add([sent[i] for i in numbers], [1 + i % 3 for i in numbers])
            assert facts.digest == digest.hexdigest()
            assert (facts.entries, facts.messages, facts.bytes) == (info.entries, info.messages, info.bytes)
            assert facts.first_publish_ms == publish_time(sent[info.base])
            copies.append(Offload(place.url, f"x/{info.id}.parquet", facts.digest, facts.entries, facts.bytes, size, 0))
        access = Access(directory=str(tmp_path))
        before = stored(access, units(access, T))
        count = len(before[0])
        assert [data for _, _, data in before[0]] == sent[:count], "the last write shows with the next one"
        for info, copy in list(zip(seen.ledgers, copies, strict=False))[1:3]:
            await recorded(log, info.id, copy)
            await recorded(log, info.id, copy._replace(released=True))
        await recorded(log, seen.ledgers[0].id, copies[0])
        after = units(access, T)
        assert [unit.copy is not None for unit in after].count(True) == 2
        rows, missing = stored(access, after)
        assert not missing
        assert rows[:count] == before[0]
        first = seen.ledgers[1]
        part = Unit(T, after[0].start, after[0].stop, 0, copy=read_directory(tmp_path).logs[T].copies[0]._replace(
            first=first.base + 2, stop=first.base + 5, hidden=(first.base + 3,)
        ))  # fmt: skip
        assert [data for _, _, data in stored(access, [part])[0]] == [sent[first.base + 2], sent[first.base + 4]]
        place.delete(f"x/{first.id}.parquet")
        rows, missing = stored(access, after)
        assert [(one.start.ledger, one.stop.entry - one.start.entry) for one in missing] == [(first.id, 10)]
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_what_is_damaged_is_not_copied(tmp_path: Path, damage: str) -> None:
    async def run() -> None:
        store, _, _ = await filled(tmp_path, 25)
        found = read_directory(tmp_path)
        seen = found.logs[T]
        info = seen.ledgers[0]
        pieces = tuple(piece for piece in seen.pieces if piece.ledger == info.id)
        if damage == "cut":
            path = next((tmp_path / "ledgers").glob("segment-*1"))
            data = bytearray(path.read_bytes())
            at = data.index(entry(3)[20:])
            data[at] ^= 1
            path.write_bytes(data)
        else:
            pieces = (pieces[0]._replace(stop=pieces[0].first + 4),)
        (tmp_path / "copies").mkdir()
        place = object_store_at(f"file://{tmp_path}/copies")
        with pytest.raises(Exception, match=r"checksum|were found"):
            write_copy(found.path, pieces, info, T, place, "x.parquet")
        assert not list((tmp_path / "copies").iterdir())
        await store.close()

    asyncio.run(run())


def test_publish_times_in_columns_are_those_of_the_entries() -> None:
    entries = [
        message(1),
        build_entry(EntryMetadata("p", 1, (1 << 62) + 5, (("a", "b" * 300),), partition_key="k", event_time=7), b"x"),
        build_entry(EntryMetadata("", 0, 0, schema_version=b"\0" * 8), b""),
    ]
    broken = [b"", b"\x0e\x01" + bytes(20), message(3)[:14], b"\x0e\x02" + message(3)[2:]]
    everything = entries + broken
    data = np.frombuffer(b"".join(everything), np.uint8)
    lengths = np.array([len(one) for one in everything], np.int64)
    offsets = np.cumsum(lengths) - lengths
    found = publish_times(data, offsets, lengths).tolist()
    assert found == [*map(publish_time, entries), *[NO_TIME] * len(broken)]
