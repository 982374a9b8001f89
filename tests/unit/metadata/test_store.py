"""One body for every maker of the metadata store: what the log alone promises is in test_metadata_log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from magnetar.metadata.store import ABSENT, MetadataStore, Record, RecordWrite
from magnetar.model.errors import BadVersionError, NotFoundError
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once


@pytest.fixture(params=["memory", "log"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MetadataStore]:
    made: MetadataStore = (
        MemoryMetadataStore() if request.param == "memory" else MetadataLog(OsFileSystem(str(tmp_path)))
    )
    yield made
    at_once(made.close())


def test_put_get_delete(store: MetadataStore) -> None:
    assert store.get("/a") is None
    assert at_once(store.put("/a", b"one")) == 0
    assert store.get("/a") == Record(b"one", 0)
    assert at_once(store.put("/a", b"\x00\xff")) == 1
    assert store.get("/a") == Record(b"\x00\xff", 1)
    at_once(store.delete("/a"))
    assert store.get("/a") is None
    with pytest.raises(NotFoundError, match="/a does not exist"):
        at_once(store.delete("/a"))
    assert at_once(store.put("/a", b"")) == 0


def test_conditional_writes(store: MetadataStore) -> None:
    at_once(store.put("/a", b"0", ABSENT))
    with pytest.raises(BadVersionError, match="/a has version 0, not -1"):
        at_once(store.put("/a", b"x", ABSENT))
    with pytest.raises(BadVersionError):
        at_once(store.put("/a", b"x", 1))
    with pytest.raises(BadVersionError):
        at_once(store.put("/b", b"x", 0))
    assert at_once(store.put("/a", b"1", 0)) == 1
    with pytest.raises(BadVersionError):
        at_once(store.delete("/a", 0))
    assert store.get("/a") == Record(b"1", 1)
    assert store.get("/b") is None
    at_once(store.delete("/a", 1))
    assert store.get("/a") is None


def test_writes_that_are_made_together(store: MetadataStore) -> None:
    heard: list[tuple[str, Record | None]] = []
    at_once(store.put("/a", b"0"))
    store.watch("/", lambda path: heard.append((path, store.get("/b"))))
    at_once(
        store.write(
            [
                RecordWrite("/a", None, 0),
                RecordWrite("/b", b"1", ABSENT),
                RecordWrite("/b", b"2", 0),
                RecordWrite("/c", b"3"),
            ]
        )
    )
    assert [store.get(path) for path in ("/a", "/b", "/c")] == [None, Record(b"2", 1), Record(b"3", 0)]
    assert heard == [(path, Record(b"2", 1)) for path in ("/a", "/b", "/b", "/c")], "none is told of a half"
    heard.clear()
    for last, error in ((RecordWrite("/b", b"x", 0), BadVersionError), (RecordWrite("/a", None), NotFoundError)):
        with pytest.raises(error):
            at_once(store.write([RecordWrite("/c", b"x"), RecordWrite("/new", b"x"), last]))
    assert [store.get(path) for path in ("/b", "/c", "/new")] == [Record(b"2", 1), Record(b"3", 0), None]
    at_once(store.write([]))
    assert heard == []


def test_children(store: MetadataStore) -> None:
    for path in ("/t/b/x", "/t/b/y", "/t/a", "/t", "/tt/c", "/t0", "/t/é%2F_", "/t-/z"):
        at_once(store.put(path, b""))
    assert store.children("/t") == ["a", "b", "é%2F_"]
    assert store.children("/t/b") == ["x", "y"]
    assert store.children("/") == ["t", "t-", "t0", "tt"]
    assert store.children("/none") == []


def test_watchers_hear_of_changes_below_and_of_nothing_else(store: MetadataStore) -> None:
    heard: list[str] = []
    unwatch = store.watch("/a", heard.append)
    at_once(store.put("/a", b""))
    at_once(store.put("/a/b", b""))
    at_once(store.put("/ab", b""))
    at_once(store.delete("/a/b"))
    with pytest.raises(BadVersionError):
        at_once(store.put("/a", b"", ABSENT))
    assert heard == ["/a", "/a/b", "/a/b"]
    unwatch()
    unwatch()
    at_once(store.put("/a", b""))
    assert len(heard) == 3


def test_a_watcher_sees_the_change_done(store: MetadataStore) -> None:
    seen: list[Record | None] = []
    store.watch("/", lambda path: seen.append(store.get(path)))
    at_once(store.put("/a", b"1"))
    at_once(store.delete("/a"))
    assert seen == [Record(b"1", 0), None]


def test_a_failing_watcher_does_not_undo_the_write(store: MetadataStore, caplog: pytest.LogCaptureFixture) -> None:
    def fail(path: str) -> None:
        raise RuntimeError("watcher")

    heard: list[str] = []
    store.watch("/a", fail)
    store.watch("/a", heard.append)
    at_once(store.put("/a", b""))
    assert heard == ["/a"]
    assert store.get("/a") == Record(b"", 0)
    assert "a watcher of /a failed" in caplog.text
