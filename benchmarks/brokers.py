"""Start, measure and stop the brokers that are compared; each is one process tree that we started, known by pid.

Memory and CPU come from the kernel: `VmHWM` of `/proc/<pid>/status` (set back through `clear_refs` before each
workload) and the CPU clock of the whole process, all threads included, in nanoseconds. Children are added, so that a
start script in front of a JVM costs nothing and a broker of several processes is not flattered.

All brokers of a run stay up. Those whose turn it is not are stopped with SIGSTOP: an idle JVM takes CPU time too, and
with two cores that would be another broker's.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.load.connection import Connection
from benchmarks.load.wire import WireError

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 120.0
STOP_SECONDS = 20.0
PULSAR_VERSION = "4.0.8"
PULSAR_ARTIFACT = f"org.apache.pulsar:pulsar-server-distribution:{PULSAR_VERSION}:tar.gz:bin"
PULSAR_MEMORY = "-Xms1g -Xmx1g -XX:MaxDirectMemorySize=2g"
READY_TOPIC = "persistent://public/default/bench-ready"


class BrokerError(Exception):
    """A broker could not be had, did not start or died."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Launch:
    """How to start a broker: a command line and what to add to the environment."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A broker that can be compared; ``durability`` is what a receipt means there."""

    name: str
    durability: str
    launch: Callable[[Path, int], Launch] | None  # data directory and port; None: somebody else started it


class Broker:
    """One running broker, on a port of its own unless an address is given."""

    def __init__(self, kind: Kind, directory: Path, address: tuple[str, int] | None = None) -> None:
        self.kind = kind
        self.name = kind.name
        self.directory = directory
        self.address = address or ("127.0.0.1", free_port())
        self.start_seconds = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it opens a producer."""
        if self.kind.launch is None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        launch = self.kind.launch(self.directory, self.address[1])
        started = time.perf_counter()
        with (self.directory / "out.log").open("ab") as log:
            self._process = subprocess.Popen(
                launch.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={**os.environ, **launch.environment},
                start_new_session=True,  # stop() finds what is left of it by its session
            )
        try:
            self._wait_until_ready(started + READY_SECONDS)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.perf_counter() - started

    def _wait_until_ready(self, limit: float) -> None:
        last = "no connection"
        while time.perf_counter() < limit:
            self.check()
            try:
                connection = Connection(self.address)
                try:
                    connection.producer(READY_TOPIC, 1)
                finally:
                    connection.close()
            except (OSError, WireError) as error:
                last = str(error)
                time.sleep(0.05)
            else:
                return
        raise BrokerError(f"{self.name} was not ready after {READY_SECONDS:.0f} s: {last}")

    def check(self) -> None:
        """Raise if it died."""
        if self.kind.launch is None:
            return
        if self._process is None or self._process.poll() is not None:
            tail = (self.directory / "out.log").read_bytes()[-600:].decode(errors="replace")
            raise BrokerError(f"{self.name} ended; its last output:\n{tail}")

    def stop(self) -> None:
        """End the whole tree; by force if it does not go."""
        process = self._process
        if process is None:
            return
        self._process = None
        tree = process_tree(process.pid)
        self._signal(tree, signal.SIGCONT)
        self._signal(tree, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        # it began a session of its own, so what is left of that session is ours to end
        self._signal([pid for pid in tree if _session(pid) == process.pid], signal.SIGKILL)
        process.wait()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let it run; paused before and after."""
        self._signal(self.pids(), signal.SIGCONT)
        try:
            yield
        finally:
            self.pause()

    def pause(self) -> None:
        self._signal(self.pids(), signal.SIGSTOP)

    @staticmethod
    def _signal(pids: list[int], number: signal.Signals) -> None:
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def pids(self) -> list[int]:
        return process_tree(self._process.pid) if self._process else []

    def cpu_seconds(self) -> float:
        return sum(cpu_seconds(pid) for pid in self.pids())

    def resident_bytes(self) -> int:
        return sum(_status_bytes(pid, "VmRSS") for pid in self.pids())

    def peak_bytes(self) -> int:
        """Highest resident size since ``reset_peak``."""
        return sum(_status_bytes(pid, "VmHWM") for pid in self.pids())

    def reset_peak(self) -> None:
        for pid in self.pids():
            try:
                Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                pass


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def process_tree(pid: int) -> list[int]:
    """The process and everything below it."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found.extend(int(child) for child in children.read_text().split())
            except OSError:
                pass
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process, also those that ended."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # how the kernel names another process's CPU clock
    except OSError:
        return 0.0


def _status_bytes(pid: int, key: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def launch_magnetar(directory: Path, port: int, *settings: str) -> Launch:
    if importlib.util.find_spec("magnetar.app.main") is None:
        raise BrokerError("magnetar.app.main does not exist")
    every = [f"brokerServicePort={port}", f"webServicePort={free_port()}", *settings]
    flags = [part for setting in every for part in ("--set", setting)]
    data = str(directory / "data")
    return Launch([sys.executable, "-m", "magnetar.app.main", "standalone", "--data", data, *flags])


def launch_magnetar_without_sync(directory: Path, port: int) -> Launch:
    return launch_magnetar(directory, port, "journalSyncData=false")


def launch_pulsar_lite(directory: Path, port: int) -> Launch:
    found = importlib.util.find_spec("pulsar_lite")
    if found is None or found.origin is None:
        raise BrokerError("the package pulsar-lite is not installed")
    program = str(Path(found.origin).parent / "bin" / "pulsar-lite")
    data = str(directory / "db")
    return Launch([program, "--addr", f"127.0.0.1:{port}", "--db-path", data, "--log-level", "error"])


def launch_apache_pulsar(directory: Path, port: int, **settings: str) -> Launch:
    """Its standalone with the shipped configuration, but on loopback and on free ports."""
    home = pulsar_home()
    changed = {
        "brokerServicePort": str(port),
        "webServicePort": str(free_port()),
        "bindAddress": "127.0.0.1",
        "advertisedAddress": "127.0.0.1",
        "allowEphemeralPorts": "true",
        "listeningInterface": "lo",
        **settings,
    }
    lines = []
    for line in (home / "conf" / "standalone.conf").read_text().splitlines():
        key = line.partition("=")[0]
        lines.append(f"{key}={changed.pop(key)}" if key in changed else line)
    lines += [f"{key}={value}" for key, value in changed.items()]
    configuration = directory / "standalone.conf"
    configuration.write_text("\n".join(lines) + "\n")
    command = [
        str(home / "bin" / "pulsar"), "standalone", "-nss", "-nfw", "-a", "127.0.0.1",
        "--bookkeeper-port", str(free_port()),
        "--bookkeeper-dir", str(directory / "bookkeeper"),
        "--metadata-dir", str(directory / "metadata"),
    ]  # fmt: skip
    environment = {
        "PULSAR_STANDALONE_CONF": str(configuration),
        "PULSAR_LOG_DIR": str(directory / "logs"),
        "PULSAR_LOG_LEVEL": "warn",
        "PULSAR_MEM": os.environ.get("PULSAR_MEM", PULSAR_MEMORY),
    }
    return Launch(command, environment)


def launch_apache_pulsar_with_sync(directory: Path, port: int) -> Launch:
    return launch_apache_pulsar(directory, port, journalSyncData="true")


def pulsar_home() -> Path:
    """The unpacked distribution; fetched once through Maven by its coordinates."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "magnetar" / "apache-pulsar"
    home = cache / f"apache-pulsar-{PULSAR_VERSION}"
    if (home / "bin" / "pulsar").exists():
        return home
    if not shutil.which("mvn"):
        raise BrokerError("Apache Pulsar comes through Maven: install maven, or leave it out with --brokers")
    cache.mkdir(parents=True, exist_ok=True)
    maven = ["mvn", "-q", "-B"]
    subprocess.run([*maven, "dependency:get", "-Dtransitive=false", f"-Dartifact={PULSAR_ARTIFACT}"], check=True)
    copy = [f"-Dartifact={PULSAR_ARTIFACT}", f"-DoutputDirectory={cache}"]
    subprocess.run([*maven, "dependency:copy", *copy], check=True)
    archive = cache / f"pulsar-server-distribution-{PULSAR_VERSION}-bin.tar.gz"
    subprocess.run(["tar", "xzf", archive, "-C", cache], check=True)
    archive.unlink()
    return home


def launch_sink(directory: Path, port: int) -> Launch:
    return Launch([sys.executable, "-m", "benchmarks.load.sink", "--port", str(port)], {"PYTHONPATH": str(ROOT)})


KINDS = (
    Kind("magnetar", "fsync before every receipt (group commit)", launch_magnetar),
    Kind("pulsar-lite", "no fsync, ever", launch_pulsar_lite),
    Kind("apache-pulsar", "no fsync (the default of its standalone)", launch_apache_pulsar),
    Kind("apache-pulsar-sync", "fsync before every receipt (journalSyncData=true)", launch_apache_pulsar_with_sync),
    Kind("magnetar-nosync", "no fsync (journalSyncData=false)", launch_magnetar_without_sync),
    Kind("sink", "stores nothing: the generator measured against a server that only answers", launch_sink),
)
BROKERS: dict[str, Kind] = {kind.name: kind for kind in KINDS}
DEFAULT = ("magnetar", "pulsar-lite", "apache-pulsar")
RUNNING = Kind("running", "not known: somebody else's broker, only driven", None)
