"""Compaction in two passes, range by range, against the broker's own rules over the same entries."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.compaction.messages import inspect_entry
from magnetar.compaction.survivors import Survivors
from magnetar.compaction.view_entries import pack
from magnetar.jobs.compaction import entry_columns, key_table
from magnetar.jobs.compaction.compacted_entries import CompactedEntries
from magnetar.jobs.compaction.entry_columns import EntryColumns, of_topic, of_view
from magnetar.jobs.compaction.key_table import KeyTable
from magnetar.jobs.compaction.rules import (
    ChunkState,
    KnownSurvivors,
    StoredEntry,
    events,
    latest,
    messages_of,
)
from magnetar.jobs.reader.segment_reader import Entries
from magnetar.protocol.entries import SingleMessageMetadata, build_entry, join_batch
from magnetar.protocol.frames import with_checksum
from tests.support.compaction_job import rows_of
from tests.support.compaction_messages import BASE, Message, batch, entries, messages, single

chunks = st.tuples(
    st.sampled_from(["u1", "u2", "u3"]), st.sampled_from(["a", "b", None]), st.integers(0, 2), st.booleans()
)
markers = st.just("marker")
raw = st.binary(max_size=30).map(lambda data: b"raw" + data)


def entry_of(one: object) -> bytes:
    if isinstance(one, Message):
        return single(one)
    if one == "marker":
        return build_entry(replace(BASE, marker_type=20), b"")
    if isinstance(one, bytes):
        return with_checksum(len(one).to_bytes(4, "big") + one)
    if isinstance(one, tuple) and isinstance(one[0], str):
        uuid, key, number, filled = one
        data = b"x" if filled else b""
        return build_entry(
            replace(
                BASE, uuid=uuid, chunk_id=number, num_chunks_from_msg=3, total_chunk_msg_size=3, partition_key=key,
                uncompressed_size=len(data), null_value=not filled,
            ),
            data,
        )  # fmt: skip
    assert isinstance(one, tuple)
    inside, kind, encrypted = one
    return batch(inside, kind, encrypted=encrypted, key="a" if encrypted else None)


def by_broker(stored: list[StoredEntry], dead: set[int], *, retain: bool) -> list[StoredEntry]:
    survivors = Survivors(retain_keyless=retain)
    alive = [one for one in stored if one.ordinal not in dead]
    for one in alive:
        survivors.note(one.ordinal, inspect_entry(one.data))
    kept = ((one, survivors.kept(one.ordinal, inspect_entry(one.data), one.data)) for one in alive)
    return [one._replace(data=data) for one, data in kept if data is not None]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(entries, chunks, markers, raw), max_size=25), st.booleans(), st.data())
def test_ranges_compacted_apart_give_the_result_of_the_broker(
    made: list[object], retain: bool, data: st.DataObject
) -> None:
    stored = [StoredEntry(10 + 2 * i, 7, i, 1, entry_of(one)) for i, one in enumerate(made)]
    dead = {one.ordinal for one in stored if data.draw(st.integers(0, 9)) == 0}
    alive = [one for one in stored if one.ordinal not in dead]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(alive)), max_size=4)))
    parts = [alive[a:b] for a, b in zip([0, *cuts], [*cuts, len(alive)], strict=True)]
    said = [event for part in parts for event in events(part)[0]]
    places, chunk_state = latest(data.draw(st.permutations(said)))
    kept = [one for part in parts for one in KnownSurvivors(places, chunk_state, retain_keyless=retain).of(part)]
    assert kept == by_broker(stored, dead, retain=retain)


def stretch_of(stored: list[StoredEntry], *, view: bool) -> EntryColumns:
    """Return entries as columns; those of a view begin with their places."""
    # the broker may have kept a message index before some of a view's entries
    datas = [pack(*one[:3], one.data, n if n % 2 else -1) if view else one.data for n, one in enumerate(stored)]
    lengths = np.array([len(data) for data in datas], np.int64)
    numbers = np.array([one[:4] for one in stored], np.int64).reshape(-1, 4)
    block = Entries(
        np.frombuffer(b"".join(datas), np.uint8), numbers[:, 1], numbers[:, 2], np.cumsum(lengths) - lengths, lengths,
        None, numbers[:, 3],
    )  # fmt: skip
    if view:
        return of_view(block)
    return of_topic(block, 0)._replace(ordinals=numbers[:, 0])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(messages, entries, chunks, markers, raw), max_size=25), st.booleans(), st.booleans())
def test_columns_give_what_single_entries_give(made: list[object], retain: bool, view: bool) -> None:
    stored = [StoredEntry(10 + 2 * i, 7, i, 1, entry_of(one)) for i, one in enumerate(made)]
    half = len(stored) // 2
    columns = [stretch_of(part, view=view) for part in (stored[:half], stored[half:]) if part]
    keys, collector = entry_columns.key_events(columns)
    said = [*rows_of(keys), *collector.events()]
    assert (latest(said), collector.messages) == (latest(events(stored)[0]), events(stored)[1])
    places, chunk_state = latest(said)
    wanted = np.array(sorted(places), np.int64)
    found = list(entry_columns.compacted_entries(columns, wanted, chunk_state, retain_keyless=retain))
    stays = by_broker(stored, set(), retain=retain)
    assert [one for part in found for one in stored_of(part)] == stays
    assert sum(part.messages for part in found) == sum(messages_of(one.data) for one in stays) <= collector.messages


def stored_of(part: CompactedEntries) -> list[StoredEntry]:
    out: list[StoredEntry] = []
    at = 0
    for size, count in zip(part.sizes.tolist(), part.counts.tolist(), strict=True):
        data = part.data[at : at + size].tobytes()
        ordinal, ledger, entry = struct.unpack_from("<qqq", data)
        out.append(StoredEntry(ordinal, ledger, entry, count, data[24:]))
        at += size
    assert at == len(part.data)
    return out


NAMES = st.lists(st.tuples(st.binary(max_size=40), st.booleans()), max_size=60)


@settings(deadline=None)
@given(st.lists(NAMES, max_size=3))
def test_a_table_of_keys_is_a_dictionary(made: list[list[tuple[bytes, bool]]]) -> None:
    """The table grows, and finds again what it has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_table, "_ROWS", 1)
        table = KeyTable()
        want: dict[bytes, tuple[int, bool]] = {}
        for number, names in enumerate(made):
            keys = [name.hex()[:30] for name, _ in names]
            singles = [
                (SingleMessageMetadata(partition_key=key), b"" if gone else b"x")
                for key, (_, gone) in zip(keys, names, strict=True)
            ]
            plain = np.frombuffer(join_batch(singles), np.uint8)
            assert table.add_batch(plain, 0, len(plain), len(names), number << 24) == len(names)
            for index, (key, (_, gone)) in enumerate(zip(keys, names, strict=True)):
                want[key.encode()] = (number << 24 | index, gone)
    assert {event.name: (event.place, event.over) for event in rows_of(table)} == want
    assert len(table) == len(want)


def test_a_batch_that_ends_too_early_says_nothing() -> None:
    table = KeyTable()
    plain = np.frombuffer(join_batch([(SingleMessageMetadata(partition_key="a"), b"x")] * 2), np.uint8)
    for count, end in ((3, len(plain)), (2, len(plain) - 1)):
        assert table.add_batch(plain, 0, end, count, 0) == key_table.UNREADABLE
    assert len(table) == 0


def test_a_result_that_ignores_deletions_differs_from_the_broker() -> None:
    stored = [StoredEntry(i, 1, i, 1, single(Message("a", value))) for i, value in enumerate([b"x", b""])]
    said = [event for one in stored for event in events([one])[0]]
    wrong, chunk_state = latest([event for event in said if not event.over])
    assert list(KnownSurvivors(wrong, chunk_state, retain_keyless=False).of(stored)) != by_broker(
        stored, set(), retain=False
    )
    right, chunk_state = latest(said)
    assert list(KnownSurvivors(right, chunk_state, retain_keyless=False).of(stored)) == []
    assert chunk_state == ChunkState(frozenset(), frozenset())
