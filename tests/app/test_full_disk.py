"""A full disk, on a small file system of its own: the broker starts, is read, acknowledged and emptied, and recovers.

The file system is a tmpfs of a few megabytes, which only root can mount; elsewhere these tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from magnetar.protocol.commands import SubType
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.support.connected import connected
from tests.support.standalone import ports, standalone

T = "persistent://public/default/t"


MB = 1 << 20


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[Path]:
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    mounted = shutil.which("mount") is not None and subprocess.run(command, capture_output=True, check=False)
    if not mounted or mounted.returncode:
        pytest.skip("a small file system cannot be mounted here: that takes root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Fill the file system to the last byte."""
    with (path / "somebody_elses").open("wb", buffering=0) as file:
        for size in (1 << 16, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


async def publish(client: RawClient, count: int) -> int:
    """How many were receipted before the disk was full."""
    receipted = 0
    try:
        producer = await client.producer(T)
        while receipted < count:
            await producer.publish(b"m" * 20_000)
            receipted += 1
    except RawClientError as refused:
        assert "the disk is full" in str(refused) or "No space left" in str(refused)
    return receipted


async def backlog(port: int, count: int) -> int:
    """Publish so many, or until the disk takes no more; a subscription keeps everything."""
    async with connected(port) as client:
        await client.subscribe(T, "s", SubType.Shared)
        return await publish(client, count)


async def drain(port: int, expected: int) -> None:
    """Read and acknowledge everything, each with an answer."""
    async with connected(port) as client:
        consumer = await client.subscribe(T, "s", SubType.Shared)
        consumer.flow(expected)
        for _ in range(expected):
            message = await consumer.receive()
            await consumer.ack(message.message_id)


async def goes_on(port: int) -> None:
    """Publishing is accepted again, within a minute."""
    async with connected(port) as client, asyncio.timeout(60):
        while not await publish(client, 1):  # noqa: ASYNC110
            await asyncio.sleep(0.5)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("filled_by", ["its backlog", "somebody else"])
def test_a_full_disk_can_be_drained_after_a_start(tmp_path: Path, end: signal.Signals, filled_by: str) -> None:
    with small_disk(tmp_path / "disk", 24 * MB) as disk:
        with standalone(disk / "data") as (process, line):
            receipted = asyncio.run(backlog(ports(line)[0], 10_000 if filled_by == "its backlog" else 300))
            assert receipted >= 300
            if filled_by == "somebody else":
                fill(disk)
                assert os.statvfs(disk).f_bavail == 0
            process.send_signal(end)
            process.wait(30)
        with standalone(disk / "data") as (process, line):
            assert "is ready" in line, process.communicate(timeout=10)[1]
            port = ports(line)[0]
            asyncio.run(drain(port, receipted))
            asyncio.run(goes_on(port))
            process.send_signal(end)
            process.wait(30)
        with standalone(disk / "data") as (process, line):
            assert "is ready" in line, process.communicate(timeout=10)[1]
            asyncio.run(goes_on(ports(line)[0]))


def test_a_disk_without_any_room_is_read(tmp_path: Path) -> None:
    """The reserve is used up and its room taken by somebody else: not one byte can be written."""
    with small_disk(tmp_path / "disk", 24 * MB) as disk:
        with standalone(disk / "data") as (process, line):
            receipted = asyncio.run(backlog(ports(line)[0], 10_000))
            fill(disk)
            process.kill()
            process.wait(30)
        for _ in range(2):
            fill(disk)
            with standalone(disk / "data") as (process, line):
                assert "is ready" in line, process.communicate(timeout=10)[1]
                fill(disk)
                assert asyncio.run(read(ports(line)[0], receipted)) == receipted
                process.kill()
                process.wait(30)


async def read(port: int, expected: int) -> int:
    """Read by the subscription that exists, and find that another one is refused with the reason."""
    async with connected(port) as client:
        consumer = await client.subscribe(T, "s", SubType.Shared)
        consumer.flow(expected)
        got = [await consumer.receive() for _ in range(expected)]
        with pytest.raises(RawClientError, match="No space left on device"):
            await client.subscribe(T, "new", SubType.Shared)
        return len(got)


def test_what_rest_refuses_on_a_full_disk_is_not_there_after_a_restart(tmp_path: Path) -> None:
    """The topic was answered with 500, "nothing of it was accepted", and existed."""
    topics = "/admin/v2/persistent/public/default"
    with small_disk(tmp_path / "disk", 24 * MB) as disk:
        with standalone(disk / "data") as (process, line):
            rest = ports(line)[1]
            said = []
            for i in range(20):
                fill(disk)
                said.append(put(rest, f"{topics}/t{i}"))
            assert 500 in said
            there = [f"persistent://public/default/t{i}" for i, status in enumerate(said) if status == 204]
            assert sorted(listed(rest, topics)) == sorted(there)
            process.kill()
            process.wait(30)
        with standalone(disk / "data") as (process, line):
            assert sorted(listed(ports(line)[1], topics)) == sorted(there)


def put(port: int, path: str) -> int:
    """Make a topic; return the status of the answer."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=40)) as connection:
        connection.request("PUT", path)
        return connection.getresponse().status


def listed(port: int, path: str) -> list[str]:
    """The topics of a namespace."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=40)) as connection:
        connection.request("GET", path)
        found: list[str] = json.loads(connection.getresponse().read())
        return found


OFFICIAL = """
import pulsar, pulsar.exceptions, sys
client = pulsar.Client(sys.argv[1], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
client.subscribe("t", "s").close()
producer = client.create_producer("t", send_timeout_millis=5000, batching_enabled=False)
for _ in range(2):
    try:
        while True:
            producer.send(b"m" * 20_000)
    except pulsar.exceptions.PulsarException as error:
        print(error)
try:
    client.create_producer("u")
except pulsar.exceptions.PulsarException as error:
    print(error)
client.close()
"""


def test_the_official_client_hears_that_the_disk_is_full(tmp_path: Path) -> None:
    """It was let in again and again, sent again what was refused, and its send never ended (decision 069)."""
    with small_disk(tmp_path / "disk", 24 * MB) as disk, standalone(disk / "data") as (_, line):
        url = f"pulsar://127.0.0.1:{ports(line)[0]}"
        official = subprocess.run([sys.executable, "-c", OFFICIAL, url], capture_output=True, text=True, timeout=60)
        assert official.returncode == 0, official.stderr
        refusals = [line for line in official.stdout.splitlines() if line.startswith("Pulsar error")]
        assert refusals == ["Pulsar error: ProducerBlockedQuotaExceededException"] * 3


def test_a_first_start_on_a_full_disk_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MB) as disk:
        fill(disk)
        with standalone(disk / "data") as (process, line):
            assert line == ""
            stderr = process.communicate(timeout=10)[1]
            assert "No space left on device" in stderr
            assert process.returncode == 1
