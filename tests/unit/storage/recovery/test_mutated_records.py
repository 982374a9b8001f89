"""A whole log in which a record says anything, with checksums that match: a start leaves it out and names it, as
``verify`` does, takes everything else, and what is written after it is there at the next start."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest
from crc32c import crc32c

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.log import records
from magnetar.storage.log.records import RecordKind
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.directory_image import Files, restored, snapshot
from tests.support.loop_turns import settled
from tests.support.mutations import U64S, mutated
from tests.support.store_lives import append, disk, numbered, opened, read, run

LARGE = StoreSettings(segment_bytes=1 << 20, cache_bytes=1, ledger_entries_max=10, ledger_min_rollover_ms=0)
T = "persistent://public/default/t{}"
CASES = 160
Block = tuple[int, int, list[records.RawRecord]]
"""Sequence, secret, records."""


def filled() -> Files:
    """The segments of a store of which everything is replayed, with records of every kind."""
    files = disk()

    async def main() -> None:
        for life in range(2):
            store = opened(files, LARGE)
            for i in range(3):
                managed = store.open_log(T.format(i))
                managed.properties = {"a": "b", "n": [1, 2]}
                managed.write_birth()
                managed.append(b"three messages", 3, None)
                await append(store, managed, *numbered(20 * life, 20 * life + 20))
                state = managed.feature_state("f")
                state.remove()
                for name in ("s", "u") if not life else ():
                    cursor = managed.open_cursor(name, 2, properties={"p": 1})
                    cursor.acknowledge([4, 5, 9, 17])
                    cursor.acknowledge_indexes(12, [5], 8)
                    await settled()
                    cursor.acknowledge([15])
            for kind in (RecordKind.FEATURE_STATE, RecordKind.FEATURE_STATE_CHANGE):
                store.journal.add_record(feature_record(kind, store.open_log(T.format(2)).id))
            managed = store.open_log(T.format(1))
            managed.trim(5, 0)
            ledger = managed.table.ledgers[0]
            copy = Offload("file:///x", f"c{life}", "d", ledger.entries, ledger.bytes, 1, 5)
            store.copy_begun(copy, lambda: None, print)
            managed.record_offload(ledger.id, copy, lambda: None, print)
            store.copy_deleted(Offload("file:///x", "c0", "d", 1, 1, 1, 5))
            if life:
                store.open_log(T.format(2)).delete_cursor("u")
                store.open_log("gone")
                await settled()
                store.delete_log("gone")
            await settled()
            await store.close()

    run(main())
    return {name: data for name, data in snapshot(files).items() if name.startswith("segment-") and "." not in name}


def feature_record(kind: RecordKind, log: int) -> bytes:
    return records.record(kind, records.feature_state_body(log, "g", b"state"))


def blocks_of(data: bytes) -> list[Block]:
    at, out = records.SEGMENT_HEADER_SIZE, []
    while (header := records.parse_block_header(data, at)) is not None:
        out.append((header.sequence, header.secret, records.parse_block(data, at, header)))
        at += records.BLOCK_HEADER_SIZE + header.length
    return out


def log_of(segments: dict[int, list[Block]]) -> Files:
    """The segments as files."""
    files: Files = {}
    length = 0
    for number, blocks in segments.items():
        sequence, secret, _ = blocks[0]
        data = records.segment_header(records.SegmentHeader(number, length, sequence, 5, secret))
        for sequence, secret, found in blocks:
            body = b"".join(record_of(raw) for raw in found)
            data += records.block_header(len(found), len(body), sequence, secret) + body
        files[segment_name(number)] = data
        length = len(data)
    return files


def record_of(raw: records.RawRecord) -> bytes:
    start = struct.pack("<BBHI", raw.kind, raw.flags & 0xFF, raw.flags >> 8, len(raw.body))
    return start + struct.pack("<I", crc32c(raw.body, crc32c(start))) + raw.body


FILES = filled()
BLOCKS = {i: blocks_of(FILES[name]) for i, name in enumerate(sorted(FILES), 1)}
KINDS = {raw.kind for blocks in BLOCKS.values() for _, _, found in blocks for raw in found}


def test_every_kind_is_there() -> None:
    assert set(RecordKind) == KINDS


def changed(rng: random.Random, raw: records.RawRecord) -> records.RawRecord:
    """A record that says something else."""
    body = raw.body
    if not rng.randrange(12):
        return raw._replace(kind=rng.choice([0, *RecordKind, 15, 255]))
    if not rng.randrange(12):
        return raw._replace(flags=rng.randrange(256))
    if not rng.randrange(8):
        cut = rng.randrange(len(body) + 1)
        return raw._replace(body=rng.choice([body[:cut], body + body[cut:], b""]))
    if body.startswith(b"{") and rng.randrange(5):
        fields: dict[str, Any] = json.loads(body)
        mutated(rng, fields)
        return raw._replace(body=json.dumps(fields).encode())
    bent = bytearray(body)
    for _ in range(rng.choice([1, 1, 3])):
        if rng.randrange(3) and len(bent) >= 8:
            at = 8 * rng.randrange(len(bent) // 8)
            bent[at : at + 8] = struct.pack("<Q", rng.choice([*U64S, rng.randrange(50)]))
        elif bent:
            bent[rng.randrange(len(bent))] = rng.randrange(256)
    return raw._replace(body=bytes(bent))


def log_with_a_change(rng: random.Random) -> Files:
    """The log with one record that is changed, doubled, left out or moved; records of rare kinds as often as others."""
    segments = {number: [(s, c, list(found)) for s, c, found in blocks] for number, blocks in BLOCKS.items()}
    wanted = rng.choice(sorted(KINDS))
    places = [
        (number, i, j)
        for number, blocks in segments.items()
        for i, (_, _, found) in enumerate(blocks)
        for j, raw in enumerate(found)
        if raw.kind == wanted
    ]
    number, i, j = rng.choice(places)
    found = segments[number][i][2]
    how = rng.randrange(10)
    if how == 0:
        del found[j]
    elif how == 1:
        found.insert(j, found[j])
    elif how == 2:
        other = rng.choice(segments[number])[2]
        other.insert(0, found.pop(j)) if other is not found else None
    else:
        found[j] = changed(rng, found[j])
    return log_of(segments)


async def used(files: FaultFileSystem) -> dict[str, int]:
    """A life in which every log is written and read, and that is killed; where the new entries are."""
    store = opened(files, LARGE)
    new: dict[str, int] = {}
    for name in store.names():
        managed = store.open_log(name)
        new[name] = managed.end
        await append(store, managed, b"more")
        assert await read(managed, managed.end - 1) == [b"more"]
        try:
            await read(managed, managed.first)
        except (MagnetarError, OSError, records.RecordError, AssertionError):
            pass  # entries that a mutated record misplaces are unreadable, or others
        for cursor in managed.cursors.values():
            cursor.backlog()
            cursor.acknowledge_until(managed.end - 2)
    await store.journal.drain()
    await stopped(store)
    return new


async def stopped(store: LedgerStore) -> None:
    store.journal.close()
    store._reader.close()
    await store._tasks.close()
    store._threads.close()
    store._backend.release()


def left_out(report: list[str]) -> list[str]:
    """Where records are that are left out."""
    return [text.split(" says what")[0] for text in report if "it is left out" in text]


@pytest.mark.parametrize("part", range(8))
def test_a_start_takes_everything_else(part: int) -> None:
    outcomes = {"refused": 0, "named": 0, "taken": 0}
    for seed in range(part * CASES // 8, (part + 1) * CASES // 8):
        files = restored(log_with_a_change(random.Random(seed)))
        report = verify(files)
        try:
            new = run(used(files))
        except PersistenceError as error:
            assert "newer version" in str(error), (seed, error)
            assert any("newer version" in text for text in report.damage), (seed, report.damage)
            outcomes["refused"] += 1
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        outcomes["named" if left_out(report.damage) else "taken"] += 1

        async def again(seed: int, files: FaultFileSystem, new: dict[str, int]) -> None:
            store = opened(files, LARGE)
            assert store.damage == [], seed
            assert not [name for name in files.names() if name.startswith("quarantine-checkpoint")], seed
            for name, ordinal in new.items():
                managed = store.find_log(name)
                assert managed is not None and managed.end == ordinal + 1, (seed, name)
                assert await read(managed, ordinal) == [b"more"], (seed, name)
            await store.close()

        run(again(seed, files.reopened(), new))
    assert outcomes["named"] and outcomes["taken"], outcomes


def test_a_kind_that_only_a_newer_version_has_refuses_the_start() -> None:
    extent = next(raw for _, _, found in BLOCKS[2] for raw in found if raw.kind == RecordKind.EXTENT)
    for kind in (0, 99):
        refused(extent._replace(kind=kind))


@pytest.mark.parametrize("flags", [4, 0x80, 0x100, 0x8000])
@pytest.mark.parametrize("kind", sorted(RecordKind))
def test_flags_that_only_a_newer_version_has_refuse_the_start(kind: RecordKind, flags: int) -> None:
    """Whatever they say of the body: to read it as one of ours would take it for something else."""
    known = [raw for blocks in BLOCKS.values() for _, _, found in blocks for raw in found if raw.kind == kind]
    refused(known[0]._replace(flags=known[0].flags | flags))


def refused(newer: records.RawRecord) -> None:
    segments = {number: [(s, c, list(found)) for s, c, found in blocks] for number, blocks in BLOCKS.items()}
    segments[2][-1][2].append(newer)
    files = restored(log_of(segments))
    with pytest.raises(PersistenceError, match="was written by a newer version of magnetar"):
        opened(files, LARGE)
    assert any("a start refuses it" in text for text in verify(files.reopened()).damage)
