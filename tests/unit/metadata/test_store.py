"""One body for every maker of the metadata store; then what only the durable one promises."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from magnetar.metadata.memory import MemoryMetadataStore
from magnetar.metadata.sqlite import FORMAT, SqliteMetadataStore
from magnetar.metadata.store import ABSENT, MetadataStore, Record
from magnetar.model.errors import BadVersionError, MetadataError, NotFoundError


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MetadataStore]:
    made: MetadataStore = (
        MemoryMetadataStore() if request.param == "memory" else SqliteMetadataStore(str(tmp_path / "m.db"))
    )
    yield made
    made.close()


def test_put_get_delete(store: MetadataStore) -> None:
    assert store.get("/a") is None
    assert store.put("/a", b"one") == 0
    assert store.get("/a") == Record(b"one", 0)
    assert store.put("/a", b"\x00\xff") == 1
    assert store.get("/a") == Record(b"\x00\xff", 1)
    store.delete("/a")
    assert store.get("/a") is None
    with pytest.raises(NotFoundError, match="/a does not exist"):
        store.delete("/a")
    assert store.put("/a", b"") == 0


def test_conditional_writes(store: MetadataStore) -> None:
    store.put("/a", b"0", ABSENT)
    with pytest.raises(BadVersionError, match="/a has version 0, not -1"):
        store.put("/a", b"x", ABSENT)
    with pytest.raises(BadVersionError):
        store.put("/a", b"x", 1)
    with pytest.raises(BadVersionError):
        store.put("/b", b"x", 0)
    assert store.put("/a", b"1", 0) == 1
    with pytest.raises(BadVersionError):
        store.delete("/a", 0)
    assert store.get("/a") == Record(b"1", 1)
    assert store.get("/b") is None
    store.delete("/a", 1)
    assert store.get("/a") is None


def test_children(store: MetadataStore) -> None:
    for path in ("/t/b/x", "/t/b/y", "/t/a", "/t", "/tt/c", "/t0", "/t/é%2F_", "/t-/z"):
        store.put(path, b"")
    assert store.children("/t") == ["a", "b", "é%2F_"]
    assert store.children("/t/b") == ["x", "y"]
    assert store.children("/") == ["t", "t-", "t0", "tt"]
    assert store.children("/none") == []


def test_watchers_hear_of_changes_below_and_of_nothing_else(store: MetadataStore) -> None:
    heard: list[str] = []
    unwatch = store.watch("/a", heard.append)
    store.put("/a", b"")
    store.put("/a/b", b"")
    store.put("/ab", b"")
    store.delete("/a/b")
    with pytest.raises(BadVersionError):
        store.put("/a", b"", ABSENT)
    assert heard == ["/a", "/a/b", "/a/b"]
    unwatch()
    unwatch()
    store.put("/a", b"")
    assert len(heard) == 3


def test_a_watcher_sees_the_change_done(store: MetadataStore) -> None:
    seen: list[Record | None] = []
    store.watch("/", lambda path: seen.append(store.get(path)))
    store.put("/a", b"1")
    store.delete("/a")
    assert seen == [Record(b"1", 0), None]


def test_a_failing_watcher_does_not_undo_the_write(store: MetadataStore, caplog: pytest.LogCaptureFixture) -> None:
    def fail(path: str) -> None:
        raise RuntimeError("watcher")

    heard: list[str] = []
    store.watch("/a", fail)
    store.watch("/a", heard.append)
    store.put("/a", b"")
    assert heard == ["/a"]
    assert store.get("/a") == Record(b"", 0)
    assert "a watcher of /a failed" in caplog.text


@pytest.fixture
def reopen(tmp_path: Path) -> Callable[[], SqliteMetadataStore]:
    return lambda: SqliteMetadataStore(str(tmp_path / "m.db"))


def test_survives_reopening(reopen: Callable[[], SqliteMetadataStore]) -> None:
    first = reopen()
    first.put("/a", b"1")
    first.put("/a", b"2")
    first.close()
    second = reopen()
    assert second.get("/a") == Record(b"2", 1)
    second.close()


def test_is_durable_by_configuration(reopen: Callable[[], SqliteMetadataStore]) -> None:
    """FULL is 2: each commit is synced (the crash tests prove the rest on real processes)."""
    made = reopen()
    assert made._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert made._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    made.close()


def test_a_failed_write_leaves_no_transaction_open(reopen: Callable[[], SqliteMetadataStore]) -> None:
    made = reopen()
    made.put("/a", b"1")
    made._db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(MetadataError, match=r"cannot write .*m\.db: database or disk is full"):
        made.put("/b", b"x" * 100_000)
    made._db.execute("PRAGMA max_page_count = 1000000")
    made.put("/b", b"2")
    assert made.get("/a") == Record(b"1", 0)
    made.close()


def test_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(MetadataError, match=r"cannot open .*m\.db"):
        SqliteMetadataStore(str(path))


def test_refuses_a_later_format(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    SqliteMetadataStore(str(path)).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    db.close()
    with pytest.raises(MetadataError, match=f"has format {FORMAT + 1}"):
        SqliteMetadataStore(str(path))
