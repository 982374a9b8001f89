"""Something else stands where a file of the broker belongs: it is named, nothing changes, nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app as magnetar
from magnetar.app.node import Node
from magnetar.app.rescue import app as rescue
from magnetar.config.settings import Settings
from magnetar.jobs.reader.topic_ledgers import read_directory
from magnetar.model.errors import PersistenceError
from magnetar.storage.backup.data_directories import back_up_directory
from tests.support.real_broker import real_broker

SETTINGS = Settings(brokerServicePort=0, webServicePort=0, bindAddress="127.0.0.1")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a message, whose broker has stopped."""
    data = tmp_path_factory.mktemp("filled") / "data"

    async def fill() -> None:
        async with real_broker(data) as broker:
            await (await (await broker.client()).producer("persistent://public/default/t")).publish(b"m")

    asyncio.run(fill())
    return data


@pytest.fixture
def data(filled: Path, tmp_path: Path) -> Path:
    """One of one's own."""
    return shutil.copytree(filled, tmp_path / "data")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        at = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        try:
            one.bind(path.name)
        finally:
            os.chdir(at)


KINDS: Final[dict[str, Callable[[Path], object]]] = {
    "a directory": Path.mkdir,
    "a named pipe": os.mkfifo,
    "a socket": a_socket,
    "a symbolic link to /nowhere/at/all": lambda path: path.symlink_to("/nowhere/at/all"),
    "leads nowhere": lambda path: path.symlink_to(path.name),
}
SEGMENT, INDEX, CHECKPOINT = "segment-0000000000000001", "segment-0000000000000001.index", "checkpoint-0000000000000001"
NAMES: Final = (
    SEGMENT, INDEX, CHECKPOINT, "segment-0000000000000009", "checkpoint-0000000000000009", "metadata-a", "metadata-b",
    "newest", "reserve", CHECKPOINT.replace("1", "2") + ".new", "newest.new",
)  # fmt: skip


def tree(path: Path) -> dict[str, object]:
    return {str(one): one.read_bytes() if one.is_file() else os.lstat(one).st_mode for one in path.rglob("*")}


def start(data: Path) -> str:
    async def run() -> None:
        node = Node(data, SETTINGS)
        await node.start()
        await node.stop()

    with pytest.raises(PersistenceError) as raised:
        asyncio.run(run())
    return str(raised.value)


def command(app: object, *words: object) -> str:
    said = CliRunner().invoke(app, [*map(str, words)])  # type: ignore[arg-type]
    assert said.exit_code == 1, said.output
    return said.output.removeprefix("magnetar: ").rstrip("\n")


def backed_up(data: Path) -> str:
    with pytest.raises(PersistenceError) as raised:
        back_up_directory(str(data), str(data.parent / "copy"))
    assert not (data.parent / "copy").exists()
    return str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_who_opens_the_directory_names_it(data: Path, name: str, kind: str) -> None:
    odd = data / "ledgers" / name
    if odd.exists():
        odd.rename(data.parent / "aside")
    KINDS[kind](odd)
    before = tree(data)
    said = [start(data), command(magnetar, "verify", data), command(rescue, "metadata", data), backed_up(data)]
    assert {one.split(": ")[0].split(" is ")[0] for one in said} == {str(odd)}, said
    assert len(set(said)) == 1
    assert kind in said[0] and "move it away" in said[0]
    assert tree(data) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [SEGMENT, CHECKPOINT, "checkpoint-0000000000000009"])
def test_a_job_names_it(data: Path, name: str, kind: str) -> None:
    odd = data / "ledgers" / name
    for one in (data / "ledgers").glob("checkpoint-*"):
        one.unlink()
    odd.unlink(missing_ok=True)
    KINDS[kind](odd)
    with pytest.raises(PersistenceError, match=f"{odd} is .*{kind}"):
        read_directory(data)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "link" not in kind and "nowhere" not in kind])
def test_an_older_versions_database_is_one_of_them(data: Path, kind: str) -> None:
    odd = data / "metadata.sqlite"
    odd.unlink()
    KINDS[kind](odd)
    before = tree(data)
    said = [start(data), command(magnetar, "verify", data)]
    assert len(set(said)) == 1
    assert said[0].startswith(f"{odd} is {kind}")
    assert tree(data) == before


def test_others_things_are_left_alone(data: Path) -> None:
    """What is not named as a file of the broker, whatever it is."""
    for i, make in enumerate(KINDS.values()):
        make(data / "ledgers" / f"other-{i}")
        make(data / "ledgers" / f"segment-{i}")

    async def run() -> None:
        node = Node(data, SETTINGS)
        await node.start()
        await node.stop()

    asyncio.run(run())
    assert CliRunner().invoke(magnetar, ["verify", str(data)]).exit_code == 0
    assert len(list((data / "ledgers").glob("other-*"))) == len(KINDS)


def test_a_pipe_for_a_lock_is_not_waited_for(data: Path) -> None:
    (data / "ledgers" / "LOCK").unlink()
    os.mkfifo(data / "ledgers" / "LOCK")
    assert CliRunner().invoke(magnetar, ["verify", str(data)]).exit_code == 0
