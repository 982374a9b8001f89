"""Directories of versions that kept their facts in SQLite open, and damaged ones say so instead of forgetting."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app as magnetar
from magnetar.app.node import Node
from magnetar.app.rescue import app as rescue
from magnetar.config.settings import Settings
from magnetar.metadata.sqlite import only_refuses, read_records
from magnetar.model.errors import MetadataError, PersistenceError
from magnetar.model.names import TopicName

FIXTURE = Path(__file__).parent / "before_metadata_log.tar.gz"
TOPIC = TopicName.parse("persistent://acme/kept/t")
SETTINGS = Settings(brokerServicePort=0, webServicePort=0, bindAddress="127.0.0.1")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def facts(data: Path) -> dict[str, object]:
    """Start on a directory, look, stop."""

    async def look() -> dict[str, object]:
        node = Node(data, SETTINGS)
        await node.start()
        try:
            await node.complete()
            resources = node.broker.resources
            log = node.broker.store.find_log(TOPIC.fqn)
            return {
                "tenant": resources.tenants.get("acme") if "acme" in resources.tenants.names() else None,
                "retention": resources.topic_policies.get(TOPIC),
                "entries": None if log is None else log.end,
                "doubt": node.broker.store.keep_all,
            }
        finally:
            await node.stop()

    return asyncio.run(look())


@pytest.mark.parametrize("kind", ["stopped", "killed"])
def test_an_old_directory_opens_with_everything_and_nothing_is_deleted(old: Path, kind: str) -> None:
    data = old / kind
    before = {path.name: path.read_bytes() for path in data.glob("metadata.sqlite*")}
    for _ in range(2):
        assert facts(data) == {
            "tenant": {"adminRoles": ["café"], "allowedClusters": ["standalone"]},
            "retention": {"retention": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}},
            "entries": 5,
            "doubt": None,
        }
    assert only_refuses(str(data / "metadata.sqlite"))
    assert (data / "migrated-metadata.sqlite").stat().st_size >= len(before["metadata.sqlite"])
    assert (data / "ledgers" / "metadata-a").exists()


def test_a_start_that_ends_before_the_old_file_is_put_away_is_repeated(old: Path) -> None:
    data = old / "stopped"
    sqlite = (data / "metadata.sqlite").read_bytes()
    facts(data)
    (data / "metadata.sqlite").write_bytes(sqlite)
    assert facts(data)["entries"] == 5
    assert only_refuses(str(data / "metadata.sqlite"))
    kept = [data / "migrated-metadata.sqlite", data / "migrated-metadata.sqlite-2"]
    assert [path.read_bytes() for path in kept] == [sqlite, sqlite], "what was kept before is not written over"


@pytest.mark.parametrize("kind", ["stopped", "killed", "new"])
def test_versions_before_refuse_a_directory_of_this_one(old: Path, kind: str) -> None:
    """They would find no file, make one, know no policies and delete by that."""
    data = old / kind
    facts(data)
    assert [path.name for path in data.glob("metadata.sqlite*")] == ["metadata.sqlite"]
    for _ in range(2):
        with closing(sqlite3.connect(data / "metadata.sqlite", isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")  # as they begin
            assert database.execute("PRAGMA user_version").fetchone() == (2,), "they read up to 1"
        facts(data)
    with pytest.raises(MetadataError, match="has format 2"):
        read_records(str(data / "metadata.sqlite"))


def test_a_write_ahead_log_that_was_left_does_not_belong_to_the_file_that_refuses(old: Path) -> None:
    data = old / "killed"
    left = (data / "metadata.sqlite-wal").read_bytes()
    facts(data)
    (data / "metadata.sqlite").unlink()
    (data / "metadata.sqlite-wal").write_bytes(left)
    for name in ("metadata.sqlite.new", "metadata.sqlite.new-journal"):  # killed while it was made
        (data / name).write_bytes(b"half")
    facts(data)
    assert not list(data.glob("*.new*"))
    assert [path.name for path in data.glob("metadata.sqlite*")] == ["metadata.sqlite"]
    assert (data / "migrated-metadata.sqlite-wal").read_bytes() == left


def test_rescue_does_not_judge_facts_that_were_not_taken_over(old: Path) -> None:
    """``--accept`` would accept that there are none, and lose all of them."""
    data = old / "stopped"
    result = CliRunner().invoke(rescue, ["metadata", str(data), "--accept"])
    assert result.exit_code == 1
    assert "start a broker on it once" in result.output
    assert facts(data)["retention"] == {"retention": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}}


def test_an_old_file_without_anything_in_it_beside_messages_is_refused(old: Path) -> None:
    data = old / "stopped"
    whole = (data / "metadata.sqlite").read_bytes()
    (data / "metadata.sqlite").write_bytes(b"")
    with pytest.raises(PersistenceError, match="holds nothing, but messages are there"):
        Node(data, SETTINGS)
    (data / "metadata.sqlite").write_bytes(whole)
    assert facts(data)["entries"] == 5


def test_verify_knows_where_the_facts_should_be(old: Path) -> None:
    data = old / "stopped"
    assert "taken over from metadata.sqlite" in CliRunner().invoke(magnetar, ["verify", str(data)]).output
    facts(data)
    assert CliRunner().invoke(magnetar, ["verify", str(data)]).exit_code == 0
    for name in ("metadata-a", "metadata-b"):
        (data / "ledgers" / name).unlink()
    result = CliRunner().invoke(magnetar, ["verify", str(data)])
    assert result.exit_code == 1
    assert "metadata in doubt" in result.output
    assert facts(data)["doubt"] is not None


def test_valid_frames_behind_a_bad_one_refuse_the_start_and_change_nothing(old: Path) -> None:
    """SQLite itself takes the first bad frame for the end and says nothing."""
    data = old / "killed"
    wal = data / "metadata.sqlite-wal"
    whole = wal.read_bytes()
    last_frame = len(whole) - (24 + 4096)
    for seed in range(60):
        offset = random.Random(seed).randrange(0, last_frame)
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << (seed % 8)
        wal.write_bytes(damaged)
        with pytest.raises(MetadataError, match="damaged"):
            read_records(str(data / "metadata.sqlite"))
        assert wal.read_bytes() == damaged
    with pytest.raises(MetadataError, match=r"metadata\.sqlite-wal is damaged at offset"):
        Node(data, SETTINGS)
    wal.write_bytes(whole)
    assert facts(data)["entries"] == 5


@pytest.mark.parametrize("missing", [1, 2, 4096, 4096 + 23, 4096 + 24])
def test_a_last_frame_that_was_cut_off_was_not_committed(old: Path, missing: int) -> None:
    """The power failed while it was written: nothing is damaged."""
    data = old / "killed"
    wal = data / "metadata.sqlite-wal"
    wal.write_bytes(wal.read_bytes()[:-missing])
    assert "/tenants/acme" in dict(read_records(str(data / "metadata.sqlite")))


def test_what_is_no_database_is_refused(old: Path) -> None:
    data = old / "stopped"
    (data / "metadata.sqlite").write_bytes(b"not a database, but long enough to look at" * 100)
    for _ in range(2):
        with pytest.raises(MetadataError, match=r"cannot read .*metadata\.sqlite"):
            Node(data, SETTINGS)
    assert (data / "metadata.sqlite").exists()


def test_a_directory_whose_disk_is_not_mounted_says_that_it_was_used(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = old / "new"
    facts(data)
    assert "was used before" not in caplog.text
    shutil.rmtree(data / "ledgers")
    result = CliRunner().invoke(magnetar, ["verify", str(data)])
    assert result.exit_code == 1
    assert "neither ledgers/ nor segments" in result.output
    facts(data)
    assert "was used before" in caplog.text
