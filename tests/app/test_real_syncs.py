"""What the installed broker answers has really been synced: the calls are counted below its code, as it runs.

The simulator's disk and the tests of the sync process believe the seam. Here a build whose sync process never calls
fdatasync, or whose ``OsFile.sync`` does nothing, is noticed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

from magnetar.testing.rawclient import RawClient
from tests.support.connected import connected
from tests.support.standalone import ports

T = "persistent://public/default/t"
MESSAGES = 20


class Sync(NamedTuple):
    """One line of the log."""

    process: str
    path: str
    size: int


def syncs(log: Path, path: Path | None = None) -> list[Sync]:
    found = []
    for line in log.read_text().splitlines():
        process, name, size = line.split("\t")
        if path is None or name == str(path):
            found.append(Sync(process, name, int(size)))
    return found


def newest(ledgers: Path) -> Path:
    return max(ledgers.glob("segment-????????????????"))


async def receipts(port: int, ledgers: Path, log: Path) -> None:
    """One message at a time: when its receipt is here, a sync of all that the segment holds was finished before."""
    async with connected(port) as client:
        await _receipts(client, ledgers, log)
    assert {str(ledgers), str(ledgers.parent), str(ledgers.parent.parent)} <= {sync.path for sync in syncs(log)}


async def _receipts(client: RawClient, ledgers: Path, log: Path) -> None:
    producer = await client.producer(T)
    by_process = 0
    for i in range(MESSAGES):
        size = 200 if i % 2 else 70_000  # through the page cache, and past it
        await producer.publish(b"x" * size)
        segment = newest(ledgers)
        done = syncs(log, segment)
        assert done, "a receipt, and the segment was never synced"
        assert done[-1].size == segment.stat().st_size, "a receipt, and its bytes were not synced"
        now = sum(sync.process == "process" for sync in done)
        assert now > by_process or i == 0, "a receipt without a sync"
        by_process = now


def facts(web: int, ledgers: Path, log: Path) -> None:
    """A change over REST is in both copies before it is answered, and both are synced."""
    for i in range(3):
        before = {name: len(syncs(log, ledgers / name)) for name in ("metadata-a", "metadata-b")}
        url = f"http://127.0.0.1:{web}/admin/v2/namespaces/public/n{i}"
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data=b"{}", method="PUT", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status in (200, 204)
        for name, count in before.items():
            done = syncs(log, ledgers / name)
            assert len(done) > count, f"a change was answered and {name} was not synced"
            assert done[-1].size == (ledgers / name).stat().st_size


def run(path: Path, fault: str) -> None:
    log = path / "syncs"
    arguments = ["standalone", "--data", str(path / "data")]
    for setting in ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1"):
        arguments += ["--set", setting]
    command = [sys.executable, "-m", "tests.app.counted_broker", str(log), fault, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "is ready" in line, process.communicate(timeout=20)[1]
        port, web = ports(line)
        asyncio.run(receipts(port, path / "data" / "ledgers", log))
        facts(web, path / "data" / "ledgers", log)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_what_is_answered_was_synced(tmp_path: Path) -> None:
    run(tmp_path, "-")


@pytest.mark.parametrize(
    ("fault", "noticed"),
    [("deaf process", "its bytes were not synced|without a sync"), ("deaf file", "was never synced|was not synced")],
)
def test_a_build_that_does_not_sync_is_noticed(tmp_path: Path, fault: str, noticed: str) -> None:
    with pytest.raises(AssertionError, match=noticed):
        run(tmp_path, fault)
