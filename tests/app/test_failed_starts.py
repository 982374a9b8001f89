"""A broker that cannot start holds nothing any more, whichever step failed: the next one starts in the same process."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from pathlib import Path

import pytest

from magnetar.app import data_directory, node
from magnetar.app.node import Broker, Node
from magnetar.app.rest import RestPort
from magnetar.broker.connection.credential_checks import CredentialChecks
from magnetar.broker.namespaces.partition_creation import PartitionCreator
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.compaction_monitor import CompactionMonitor
from magnetar.broker.upkeep.liveness import Liveness
from magnetar.broker.upkeep.periodic_passes import Upkeep
from magnetar.broker.upkeep.rates import Rates
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import MagnetarError
from magnetar.runtime.connections.acceptor import Acceptor
from magnetar.runtime.rotated_lines import RotatedLines
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.metadata_log.metadata_copy import MetadataCopy
from magnetar.storage.metadata_log.metadata_log import MetadataLog

STEPS: list[tuple[object, str]] = [
    # what makes the node
    (data_directory, "close_to_others"),
    (data_directory, "refuse_newer"),
    (MetadataCopy, "open"),
    (MetadataLog, "_mend"),
    (node, "Random"),
    (node, "SyncProcess"),
    (node, "_audit"),
    (node, "_authentication"),
    (node, "SettingChanges"),
    # what starts the broker
    (RotatedLines, "start"),
    (LocalLedgerStore, "open"),
    (Resources, "ensure_defaults"),
    (Broker, "_instance"),
    (BrokerService, "start"),
    (PartitionCreator, "start"),
    (Upkeep, "start"),
    (CompactionMonitor, "start"),
    (Rates, "start"),
    (Liveness, "start"),
    (CredentialChecks, "start"),
    # what listens
    (node, "limit_now"),
    (node, "http_entrances"),
    (node, "binary_entrances"),
    (Acceptor, "open"),
    (Resources, "announce"),
    (RestPort, "start"),
    (node, "Memory"),
]
_HERE = Path("/proc/self/fd")


class FaultError(Exception):
    """What the step raises."""


def settings(path: Path) -> Settings:
    return Settings(
        brokerServicePort=0, webServicePort=0, bindAddress="127.0.0.1", authenticationEnabled=True,
        authorizationEnabled=True, anonymousUserRole="somebody", auditLogFile=str(path / "audit"),
    )  # fmt: skip


def held() -> tuple[list[str], int]:
    """The open descriptors, without those of the loop, and the threads that are not shared by all."""
    places = []
    for one in _HERE.iterdir():
        try:
            places.append(os.readlink(one))
        except FileNotFoundError:
            continue  # the one that read the directory
    shared = sum(thread.name.startswith("asyncio_") for thread in threading.enumerate())
    return sorted(place for place in places if "fd" not in place), threading.active_count() - shared


async def lives(path: Path) -> None:
    broker = Node(path / "data", settings(path))
    await broker.start()
    await broker.complete()
    await broker.stop()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker has left; what it imports stays open from now on."""
    path = tmp_path_factory.mktemp("lived")
    asyncio.run(lives(path))
    return path


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[f"{getattr(o, '__name__', '')}.{s}" for o, s in STEPS])
@pytest.mark.parametrize("error", [FaultError("a fault"), OSError(5, "the disk is broken"), asyncio.CancelledError()])
def test_every_step_may_fail(
    lived: Path, tmp_path: Path, owner: object, step: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(lived, tmp_path, dirs_exist_ok=True)

    def fails(*_: object, **__: object) -> None:
        raise error

    async def run() -> None:
        tasks, before = asyncio.all_tasks(), held()
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, fails)
            with pytest.raises((FaultError, OSError, MagnetarError, asyncio.CancelledError)):
                broker = Node(tmp_path / "data", settings(tmp_path))
                await broker.start()
        assert held() == before
        assert asyncio.all_tasks() == tasks
        await lives(tmp_path)

    asyncio.run(run())


_BEFORE_ANY_CLIENT = STEPS[: STEPS.index((Acceptor, "open"))]


@pytest.mark.parametrize(("owner", "step"), _BEFORE_ANY_CLIENT, ids=[step for _, step in _BEFORE_ANY_CLIENT])
def test_a_start_that_fails_leaves_no_new_directory(
    tmp_path: Path, owner: object, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "the disk is broken")

    async def run(data: Path) -> bool:
        """Whether the start failed: some steps are of a directory that there was before."""
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, fails)
            try:
                broker = Node(data, settings(tmp_path))
                await broker.start()
            except (OSError, MagnetarError):
                return True
        await broker.stop()
        return False

    failed = asyncio.run(run(tmp_path / "new" / "data"))
    assert (tmp_path / "new").exists() != failed
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "mine").touch()
    asyncio.run(run(tmp_path / "old"))
    assert (tmp_path / "old" / "mine").exists()


def test_a_stop_that_fails_in_one_step_does_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> None:
        raise FaultError

    async def run() -> None:
        await lives(tmp_path)
        before = held()
        broker = Node(tmp_path / "data", settings(tmp_path))
        await broker.start()
        await broker.complete()
        with monkeypatch.context() as patched:
            patched.setattr(Rates, "close", fails)
            with pytest.raises(FaultError):
                await broker.stop()
        await broker.broker.rates.close()
        assert held() == before
        await lives(tmp_path)

    asyncio.run(run())
