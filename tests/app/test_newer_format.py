"""A directory of a newer version: whoever opens it says so, names the format and leaves every byte as it was."""

from __future__ import annotations

import asyncio
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c
from typer.testing import CliRunner

from magnetar.app.main import app as magnetar
from magnetar.app.node import Node
from magnetar.app.rescue import app as rescue
from magnetar.cli.backup.command import app as backup
from magnetar.cli.restore.command import app as restore
from magnetar.config.settings import Settings
from magnetar.jobs.reader.topic_ledgers import read_directory
from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backup.data_directories import back_up_directory
from magnetar.storage.backup.manifest import MANIFEST, BackedUpFile, manifest_line, read_manifest
from tests.support.real_broker import real_broker

SETTINGS = Settings(brokerServicePort=0, webServicePort=0, bindAddress="127.0.0.1")
NEWER = "format 3"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a message, whose broker has stopped."""

    async def fill() -> None:
        async with real_broker(tmp_path / "data") as broker:
            await (await (await broker.client()).producer("persistent://public/default/t")).publish(b"m")

    asyncio.run(fill())
    return tmp_path / "data"


def newer_checkpoint(data: Path) -> None:
    """The newest is of format 3, and what comes after its head is not what this version would find there."""
    path = max((data / "ledgers").glob("checkpoint-*"))
    content = path.read_bytes()
    (size,) = struct.unpack_from("<I", content, 8)
    head = json.dumps({**json.loads(content[12 : 12 + size]), "format": 3}).encode()
    body = content[:8] + struct.pack("<I", len(head)) + head + b"\xff" * 9
    path.write_bytes(body + struct.pack("<I", crc32c(body)))


def newer_metadata(data: Path) -> None:
    for path in (data / "ledgers").glob("metadata-?"):
        first, rest = path.read_bytes().split(b"\n", 1)
        body = first[9:].replace(b'"format":1', b'"format":3')
        path.write_bytes(b"%08x %s\n%s" % (crc32c(body), body, rest))


def tree(path: Path) -> dict[str, bytes]:
    return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}


def start(data: Path) -> str:
    async def run() -> None:
        node = Node(data, SETTINGS)
        await node.start()
        await node.stop()

    with pytest.raises(PersistenceError) as refused:
        asyncio.run(run())
    return str(refused.value)


@pytest.mark.parametrize("newer", [newer_checkpoint, newer_metadata])
def test_every_program_refuses_it_and_changes_nothing(
    data: Path, tmp_path: Path, newer: Callable[[Path], None]
) -> None:
    newer(data)
    before = tree(data)
    assert NEWER in start(data)
    for command, words in (
        (magnetar, ["verify", str(data)]),
        (rescue, ["metadata", str(data)]),
        (rescue, ["metadata", "--accept", str(data)]),
        (backup, ["--data", str(data), str(tmp_path / "backup")]),
    ):
        result = CliRunner().invoke(command, words)
        assert (result.exit_code, NEWER in result.output) == (1, True), (words, result.output)
    assert tree(data) == before
    assert not (tmp_path / "backup").exists()


def test_jobs_do_not_take_the_checkpoint_for_a_damaged_one(data: Path) -> None:
    newer_checkpoint(data)
    with pytest.raises(PersistenceError, match=NEWER):
        read_directory(data)


def test_the_metadata_are_not_mended_first(data: Path) -> None:
    newer_checkpoint(data)
    with (data / "ledgers" / "metadata-b").open("ab") as file:
        file.write(b"torn")
    before = tree(data)
    assert NEWER in start(data)
    assert tree(data) == before


def test_a_backup_of_it_is_not_restored(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "backup"
    back_up_directory(str(data), str(kept))
    (tmp_path / "shown").mkdir()
    shutil.copytree(kept, tmp_path / "shown" / "ledgers")
    newer_checkpoint(tmp_path / "shown")
    shutil.rmtree(kept)
    shutil.move(tmp_path / "shown" / "ledgers", kept)
    said = read_manifest(OsFileSystem(str(kept)))
    files = [BackedUpFile(one.name, len(content), crc32c(content)) for one in said.files
             for content in [(kept / one.name).read_bytes()]]  # fmt: skip
    (kept / MANIFEST).write_bytes(manifest_line(said._replace(files=files)))
    result = CliRunner().invoke(restore, [str(kept), "--data", str(tmp_path / "new")])
    assert (result.exit_code, NEWER in result.output) == (1, True), result.output
    assert not (tmp_path / "new").exists()


def test_a_start_that_is_refused_for_a_missing_segment_writes_nothing_either(data: Path) -> None:
    for path in (data / "ledgers").glob("checkpoint-*"):
        path.unlink()
    (data / "ledgers" / "segment-0000000000000001").rename(data / "ledgers" / "segment-0000000000000002")
    before = tree(data)
    assert "the state cannot be rebuilt" in start(data)
    assert tree(data) == before
