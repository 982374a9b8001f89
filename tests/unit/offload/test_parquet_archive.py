"""Objects as the broker reads them back: a footer that was kept does not outlive the object that it belonged to."""

from __future__ import annotations

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.offload.format import LedgerWriter
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.storage.ledgers.archive import Offload
from tests.support.memory_object_store import MemoryObjectStore

ENTRIES = [bytes([i % 251]) * 200 for i in range(500)]


def written(place: MemoryObjectStore, name: str, group_bytes: int) -> Offload:
    draft = place.draft(name)
    writer = LedgerWriter(draft.target, "persistent://a/b/c", 7, 0, group_bytes)
    writer.add(ENTRIES, None)
    facts = writer.close()
    return Offload(place.url, name, facts.digest, facts.entries, facts.bytes, draft.commit(), 0)


def test_an_object_that_was_put_back_in_another_shape_is_read_after_one_error() -> None:
    place = MemoryObjectStore()
    archive = ParquetArchive(lambda url: place)
    copy = written(place, "a", 10_000)
    assert archive.piece(copy, 7, 499).entries[-1] == ENTRIES[499]
    written(place, "b", 33_000)
    place.objects["a"] = place.objects["b"]
    with pytest.raises((PersistenceError, OSError)):
        archive.piece(copy, 7, 499)
    piece = archive.piece(copy, 7, 499)
    assert piece.entries == ENTRIES[piece.entry : piece.entry + len(piece.entries)]
