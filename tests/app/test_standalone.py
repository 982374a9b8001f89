"""``magnetar standalone`` as a process: both ports, how soon it serves, what it takes, how it stops."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from magnetar.testing.rawclient import RawClient
from tests.support.standalone import ports, standalone

PRIVATE_BYTES_MAX = 55_000_000
"""52.6 MB with all routes. With FastAPI, and the libraries' pages, it was 88.5 MB instead of 74.7."""


FIRST_RECEIPT_CPU_MAX = 3.0
"""Seconds of its processor time, which a busy machine hardly changes: 0.5 to 0.7 are taken."""


async def publish(port: int) -> None:
    client = await RawClient.open("127.0.0.1", port)
    await client.connect()
    await (await client.producer("persistent://public/default/t")).publish(b"m")
    await client.close()


def fetch(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answered:
        return str(answered.read().decode())


def private_bytes(pid: int) -> int:
    """Return the memory of the process and its children that is no file's.

    Pages of libraries are shared, and how many of them are mapped depends on what the machine has read before: the same
    code had 78.4 and 79.3 MB with them.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    own = sum(map(int, re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.MULTILINE)))
    assert own
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own * 1024 + sum(private_bytes(int(child)) for child in children)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of the process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_serves_soon_and_small_on_both_ports(tmp_path: Path) -> None:
    with standalone(tmp_path / "data") as (process, line):
        port, http_port = ports(line)
        asyncio.run(publish(port))
        if sys.platform == "linux":
            assert cpu_seconds(process.pid) < FIRST_RECEIPT_CPU_MAX
        assert fetch(http_port, "/admin/v2/brokers/ready") == "ok"
        if sys.platform == "linux":
            assert private_bytes(process.pid) < PRIVATE_BYTES_MAX
        # asked at once: the request waits in the socket until REST is built
        assert '"msgInCounter":1' in fetch(http_port, "/admin/v2/persistent/public/default/t/stats")
        assert fetch(http_port, "/admin/v2/brokers/health") == "ok"
        assert f'"httpUrl":"http://127.0.0.1:{http_port}"' in fetch(
            http_port, "/lookup/v2/topic/persistent/public/default/t"
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_even_before_rest_is_built(tmp_path: Path, number: int) -> None:
    with standalone(tmp_path / "data") as (process, line):
        ports(line)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0, said
        assert "Traceback" not in said


@pytest.mark.parametrize(("setting", "which"), [("brokerServicePort", 0), ("webServicePort", 1)])
def test_a_taken_port_is_said(tmp_path: Path, setting: str, which: int) -> None:
    with standalone(tmp_path / "one") as (_, line):
        taken = ports(line)[which]
        with standalone(tmp_path / "two", f"{setting}={taken}") as (process, nothing):
            _, said = process.communicate(timeout=30)
            assert (process.returncode, nothing) == (1, "")
            assert str(taken) in said
            assert "is in use" in said and "Errno" not in said
            assert "Traceback" not in said
        assert not (tmp_path / "two").exists()
        # it has left nothing behind that would be in the way
        with standalone(tmp_path / "two") as (_, again):
            assert ports(again)


@pytest.mark.parametrize("descriptors", [64, 256])
def test_connections_never_take_the_descriptors_of_the_disk(tmp_path: Path, descriptors: int) -> None:
    """A few hundred idle ones stopped everybody's publishing when a segment was rolled; with 64 the process ended."""
    with standalone(tmp_path, descriptors=descriptors) as (process, line):
        broker, http = ports(line)
        fetch(http, "/admin/v2/brokers/health")
        open_before = len(os.listdir(f"/proc/{process.pid}/fd"))
        asyncio.run(crowd(broker, http, descriptors))
        assert process.poll() is None
        deadline = time.monotonic() + 30
        while len(os.listdir(f"/proc/{process.pid}/fd")) > open_before + 5:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.poll() is None
        assert "ok" in fetch(http, "/admin/v2/brokers/health")


async def crowd(broker: int, http: int, descriptors: int) -> None:
    """More idle connections than there are descriptors; the clients from before go on, the rest hear why."""
    client = await RawClient.open("127.0.0.1", broker)
    await client.connect()
    producer = await client.producer("persistent://public/default/t")
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(descriptors) for port in (broker, http)]
    for _ in range(20):
        await producer.publish(b"m")
    hearing, refused = {asyncio.ensure_future(reader.read(1000)) for reader, _ in idle}, list[bytes]()
    async with asyncio.timeout(60):
        while len(refused) <= descriptors:
            heard, hearing = await asyncio.wait(hearing, return_when=asyncio.FIRST_COMPLETED)
            refused += [said for one in heard if (said := one.result())]
    heard, hearing = await asyncio.wait(hearing, timeout=0.5)
    refused += [said for one in heard if (said := one.result())]
    assert {b"Reached the maximum number of connections" in said for said in refused} == {True}
    for one in hearing:
        one.cancel()
    for _, writer in idle:
        writer.close()
    await client.close()


def test_too_few_descriptors_end_the_start_with_a_reason(tmp_path: Path) -> None:
    with standalone(tmp_path, descriptors=40) as (process, line):
        assert line == ""
        _, said = process.communicate(timeout=30)
        assert "40 file descriptors are too few" in said
        assert process.returncode == 1
