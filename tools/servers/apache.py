"""Apache Pulsar itself, standalone, on loopback: the reference that our answers are compared with.

The distribution comes from Maven by its coordinates (245 MB, once) and stays unpacked in the cache
(`$XDG_CACHE_HOME/magnetar/apache-pulsar`). A run keeps its settings, metadata, ledgers and logs in a directory of its
own. Needs Java 17 or later; Maven only for the download.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tools.servers.process import HOST, Server, StartFailedError, free_ports, spawn, wait_until

VERSION = "4.0.8"
READY_SECONDS_MAX = 120.0
MEMORY = "-Xms512m -Xmx1g -XX:MaxDirectMemorySize=1g"
HEALTH_PATH = "/admin/v2/brokers/health"


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "magnetar" / "apache-pulsar"


def home(version: str = VERSION) -> Path:
    """The unpacked distribution; downloaded and unpacked first if it is not there yet."""
    place = cache() / f"apache-pulsar-{version}"
    if (place / "bin" / "pulsar").exists():
        return place
    for program in ("java", "mvn"):
        if not shutil.which(program):
            raise StartFailedError(f"Apache Pulsar needs {program}: apt-get install openjdk-17-jre-headless maven")
    artifact = f"org.apache.pulsar:pulsar-server-distribution:{version}:tar.gz:bin"
    archive = cache() / f"pulsar-server-distribution-{version}-bin.tar.gz"
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"unpacking-{version}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # two programmes that meet an empty cache: one unpacks, the other waits
        return place if (place / "bin" / "pulsar").exists() else _unpacked(version, artifact, archive, place)


def _unpacked(version: str, artifact: str, archive: Path, place: Path) -> Path:
    unpacking = cache() / f"unpacking-{version}"
    shutil.rmtree(unpacking, ignore_errors=True)
    unpacking.mkdir(parents=True)
    if not archive.exists():
        for goal in (["dependency:get", "-Dtransitive=false"], ["dependency:copy", f"-DoutputDirectory={cache()}"]):
            subprocess.run(["mvn", "-q", "-B", *goal, f"-Dartifact={artifact}"], check=True, cwd=unpacking)
    with tarfile.open(archive) as packed:
        packed.extractall(unpacking, filter="tar")
    # only a complete unpacking gets the final name
    (unpacking / place.name).rename(place)
    shutil.rmtree(unpacking)
    archive.unlink()
    return place


def configuration(shipped: str, settings: Mapping[str, str]) -> str:
    """The shipped `standalone.conf` with ``settings`` over it; a key that it does not list is put at its end."""
    left = dict(settings)
    lines = []
    for line in shipped.splitlines():
        key = line.partition("=")[0].strip()
        lines.append(f"{key}={left.pop(key)}" if key in left else line)
    return "\n".join([*lines, *(f"{key}={value}" for key, value in left.items())]) + "\n"


def healthy(http_port: int) -> bool:
    """Whether the health check passes. 401 means that its web service is up and wants credentials."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{http_port}{HEALTH_PATH}", timeout=10) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        return error.code == 401
    except OSError:
        return False


def listening(port: int) -> bool:
    """Whether somebody takes connections there: with authentication on, the web service answers before the broker."""
    try:
        socket.create_connection((HOST, port), timeout=10).close()
    except OSError:
        return False
    return True


def start(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    broker_port: int = 0,
    http_port: int = 0,
    version: str = VERSION,
) -> Server:
    """Start it with everything it writes under ``directory`` and wait until its health check passes."""
    place = home(version)
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    ports = free_ports(3)
    broker, http, bookie = broker_port or ports[0], http_port or ports[1], ports[2]
    wanted = {
        "brokerServicePort": str(broker),
        "webServicePort": str(http),
        "bindAddress": HOST,
        "advertisedAddress": HOST,
        # without these two the bookie listens on every interface and on its default port
        "allowEphemeralPorts": "true",
        "listeningInterface": "lo",
        **(settings or {}),
    }
    file = directory / "standalone.conf"
    file.write_text(configuration((place / "conf" / "standalone.conf").read_text(), wanted))
    server = spawn(
        f"Apache Pulsar {version}",
        [
            place / "bin" / "pulsar", "standalone", "--no-functions-worker", "--no-stream-storage",
            "--advertised-address", HOST, "--bookkeeper-port", str(bookie),
            "--bookkeeper-dir", directory / "bookkeeper", "--metadata-dir", directory / "metadata",
        ],
        directory / "out.log",
        environment={
            "PULSAR_STANDALONE_CONF": str(file),
            "PULSAR_LOG_DIR": str(directory / "logs"),
            "PULSAR_LOG_LEVEL": "warn",
            "PULSAR_MEM": os.environ.get("PULSAR_MEM", MEMORY),
        },
        cwd=place,
    )  # fmt: skip
    server.broker_port, server.http_port = broker, http
    wait_until(server, lambda: healthy(http) and listening(broker), READY_SECONDS_MAX)
    return server
