"""The file of an offloaded ledger: what goes in comes out, what is damaged is refused, others can read it."""

from __future__ import annotations

import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import LocalStore, MemoryStore

from magnetar.model.errors import InvalidValueError, PersistenceError
from magnetar.model.names import TopicName
from magnetar.offload.digest import LedgerDigest
from magnetar.offload.format import KEY, LedgerFile, LedgerFileInfo, LedgerWriter, check, footer
from magnetar.offload.object_store import (
    BucketObjectStore,
    DirectoryObjectStore,
    ObjectStore,
    folder_of,
    object_store_at,
)
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.storage.ledgers.archive import Offload
from tests.support.memory_object_store import MemoryObjectStore

Content = tuple[list[bytes], list[int] | None]


def entry(i: int, size: int = 10) -> bytes:
    return build_entry(EntryMetadata("p", i, 1_700_000_000_000 + i), bytes([i % 256]) * size)


def written(content: Content, pieces: int = 7, group_bytes: int = 200, index: int = 5) -> tuple[bytes, LedgerFileInfo]:
    entries, counts = content
    target = io.BytesIO()
    writer = LedgerWriter(target, "persistent://a/b/c", 3, index, group_bytes)
    for at in range(0, len(entries), pieces):
        writer.add(entries[at : at + pieces], None if counts is None else counts[at : at + pieces])
    facts = writer.close()
    return target.getvalue(), facts


def held(content: Content, **options: Any) -> tuple[ParquetArchive, Offload, MemoryObjectStore]:
    data, facts = written(content, **options)
    place = MemoryObjectStore()
    place.objects["x"] = data
    offload = Offload(place.url, "x", facts.digest, facts.entries, facts.bytes, len(data), 0)
    return ParquetArchive(lambda url: place), offload, place


def read_back(archive: ParquetArchive, offload: Offload) -> Content:
    entries: list[bytes] = []
    counts: list[int] = []
    while len(entries) < offload.entries:
        piece = archive.piece(offload, 3, len(entries))
        assert piece.entry == len(entries)
        entries += piece.entries
        counts += piece.counts or [1] * len(piece.entries)
    return entries, counts


contents = st.lists(st.tuples(st.binary(max_size=120), st.integers(1, 1000)), min_size=1, max_size=40)


@settings(max_examples=40, deadline=None)
@given(contents, st.integers(1, 9), st.integers(1, 500), st.data())
def test_what_goes_in_comes_out(pairs: list[tuple[bytes, int]], pieces: int, group: int, data: st.DataObject) -> None:
    content = [a for a, _ in pairs], [b for _, b in pairs]
    archive, offload, _ = held(content, pieces=pieces, group_bytes=group)
    assert read_back(archive, offload) == content
    assert archive.check(offload, 3) == offload.size
    at = data.draw(st.integers(0, len(pairs) - 1))
    piece = archive.piece(offload, 3, at)
    assert piece.entries[at - piece.entry] == content[0][at]
    assert piece.message_index == 5 + sum(content[1][: piece.entry])
    digest = LedgerDigest()
    for i in range(0, len(pairs), 3):
        digest.add(content[0][i : i + 3], content[1][i : i + 3])
    assert digest.hexdigest() == offload.digest
    assert (digest.entries, digest.bytes) == (offload.entries, offload.bytes)


@settings(max_examples=40, deadline=None)
@given(contents, contents)
def test_the_digest_tells_ledgers_apart(a: list[tuple[bytes, int]], b: list[tuple[bytes, int]]) -> None:
    def digest(pairs: list[tuple[bytes, int]]) -> str:
        found = LedgerDigest()
        found.add([x for x, _ in pairs], [y for _, y in pairs])
        return found.hexdigest()

    assert (digest(a) == digest(b)) == (a == b)
    joined = [(a[0][0] + a[-1][0], a[0][1]), *a[1:]]
    assert (digest(joined) == digest(a)) == (joined == a)


def test_no_bit_of_the_entries_turns_unnoticed() -> None:
    content = [entry(i, 30) for i in range(20)], None
    archive, offload, place = held(content)
    whole = place.objects["x"]
    for at in range(0, len(whole), 37):
        place.objects["x"] = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        fresh = ParquetArchive(lambda url: place)
        try:
            found = read_back(fresh, offload)[0]
        except (PersistenceError, OSError):
            continue
        assert found == content[0], f"a turned bit at {at} gave other entries"
    place.objects["x"] = whole[: len(whole) // 2]
    with pytest.raises((PersistenceError, OSError)):
        archive.check(offload, 3)


def test_another_file_is_refused_by_name() -> None:
    archive, offload, place = held(([entry(1)], None))
    for wrong, reason in (
        (offload._replace(digest="0" * 64), "is not the copy of ledger 3"),
        (offload._replace(entries=2), "is not the copy"),
        (offload._replace(name="y"), "there is no y"),
    ):
        with pytest.raises((PersistenceError, OSError), match=reason):
            archive.piece(wrong, 3, 0) if wrong.digest == offload.digest else archive.check(wrong, 3)
    with pytest.raises(PersistenceError, match="is not the copy of ledger 4"):
        archive.check(offload, 4)
    with pytest.raises(PersistenceError, match="has no entry 1"):
        archive.piece(offload, 3, 1)
    target = io.BytesIO()
    pl.DataFrame({"data": [b"x"]}).write_parquet(target)
    place.objects["plain"] = target.getvalue()
    with pytest.raises(PersistenceError, match="was not written as a ledger's copy"):
        archive.check(offload._replace(name="plain"), 3)
    place.objects["text"] = b"no parquet at all"
    with pytest.raises(PersistenceError, match="is no Parquet file"):
        archive.check(offload._replace(name="text"), 3)


def test_others_can_query_it(tmp_path: Path) -> None:
    entries = [entry(i) for i in range(10)] + [b"unreadable"]
    data, facts = written((entries, [i + 1 for i in range(11)]), index=100)
    (tmp_path / "x.parquet").write_bytes(data)
    table = pl.read_parquet(tmp_path / "x.parquet")
    assert table["entry"].to_list() == list(range(11))
    assert set(table["ledger"]) == {3}
    assert table["index"].to_list() == [100 + i * (i + 1) // 2 for i in range(11)]
    assert table["messages"].to_list() == [i + 1 for i in range(11)]
    assert table["data"].to_list() == entries
    assert table["size"].to_list() == list(map(len, entries))
    assert [t and int(t.timestamp() * 1000) for t in table["publish_time"]] == [
        *(1_700_000_000_000 + i for i in range(10)), None,
    ]  # fmt: skip
    assert (facts.first_publish_ms, facts.last_publish_ms) == (1_700_000_000_000, 1_700_000_000_009)
    said = json.loads(pq.read_metadata(tmp_path / "x.parquet").metadata[KEY])
    assert (said["topic"], said["entries"], said["messages"]) == ("persistent://a/b/c", 11, 66)


def places(tmp_path: Path) -> list[ObjectStore]:
    for name in ("a b", "c"):
        (tmp_path / name).mkdir(exist_ok=True)
    return [
        object_store_at(f"file://{tmp_path}/a%20b"),
        DirectoryObjectStore("/x", str(tmp_path / "c")),
        BucketObjectStore("s3://b", LocalStore(str(tmp_path / "d"), mkdir=True)),
        BucketObjectStore("s3://b", MemoryStore()),
        MemoryObjectStore(),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_place_keeps_whole_objects_under_names_used_once(number: int, tmp_path: Path) -> None:
    place = places(tmp_path)[number]
    name = "public/default/t%2F1/ledger-7.parquet"

    def put() -> int:
        draft = place.draft(name)
        writer = LedgerWriter(draft.target, "t", 3, 0)
        writer.add([entry(i) for i in range(50)], None)
        writer.close()
        with pytest.raises(FileNotFoundError):
            place.open("public/default/t%2F1/ledger-8.parquet")
        return draft.commit()

    size = put()
    with pytest.raises(FileExistsError):
        put()
    source = place.open(name)
    file = LedgerFile(footer(source, "x"), "x")
    assert check(file, source).entries == 50
    source.seek(0, 2)
    assert source.tell() == size
    source.close()
    place.draft("public/other").abandon()
    if isinstance(place, DirectoryObjectStore):
        Path(place.draft(name).target).write_bytes(b"half")
    place.delete(name)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()], "also what a kill left is deleted"
    place.delete(name)
    with pytest.raises(FileNotFoundError):
        place.open(name)


def test_a_copy_for_a_bucket_has_no_name_that_a_kill_would_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for end in ("commit", "abandon"):
        draft = BucketObjectStore("s3://b", MemoryStore()).draft("a/b.parquet")
        draft.target.write(b"half of a ledger")
        assert os.listdir(tmp_path) == []
        getattr(draft, end)()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("topic", ["t", "ä" * 100, "ä" * 99 + "b", "a/b", ".", "..", "...", "%2E"])
def test_every_topic_has_a_folder_of_its_own_that_file_systems_take(topic: str, tmp_path: Path) -> None:
    folder = folder_of(TopicName.parse(f"persistent://tenant/ns/{topic}"))
    draft = DirectoryObjectStore("/x", str(tmp_path)).draft(f"{folder}/ledger-1.parquet")
    Path(draft.target).write_bytes(b"x")
    assert draft.commit() == 1
    assert [path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*.parquet")] == [("tenant", "ns")]
    others = ("t", "ä" * 100, "ä" * 99 + "b", "a/b", ".", "..", "...", "%2E")
    folders = {folder_of(TopicName.parse(f"persistent://tenant/ns/{other}")) for other in others}
    assert len(folders) == len(others)


@pytest.mark.parametrize("url", ["", "relative/path", "file://host/path", "ftp://x/y", "s3:///nobucket"])
def test_what_is_no_place(url: str) -> None:
    with pytest.raises(InvalidValueError):
        object_store_at(url)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\\b"])
def test_what_is_no_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError):
        DirectoryObjectStore("/x", str(tmp_path)).open(name)
