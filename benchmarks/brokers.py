"""The brokers that are compared: started by `tools.servers`, measured and paused here; each is known by its pid.

Memory and CPU come from the kernel: `VmHWM` of `/proc/<pid>/status` (set back through `clear_refs` before each
workload) and the CPU clock of the whole process, all threads included, in nanoseconds. Children are added, so that a
start script in front of a JVM costs nothing and a broker of several processes is not flattered.

All brokers of a run stay up. Those whose turn it is not are stopped with SIGSTOP: an idle JVM takes CPU time too, and
with two cores that would be another broker's.
"""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jwt
from tools.servers import apache, lite, magnetar
from tools.servers.process import HOST, Server, free_ports, listening, spawn, wait_until

from benchmarks.load.connection import Address, Connection
from benchmarks.load.wire import WireError

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 60.0
PULSAR_MEMORY = "-Xms1g -Xmx1g -XX:MaxDirectMemorySize=2g"
AUTHORITY = "authority.pem"
TOKEN = "token.txt"
READY_TOPIC = "persistent://public/default/bench-ready"


class BrokerError(Exception):
    """A broker does not serve, or died."""


@dataclass(frozen=True)
class Kind:
    """A broker that can be compared; ``durability`` is what a receipt means there."""

    name: str
    durability: str
    start: Callable[[Path], Server] | None  # given its directory; None: somebody else started it
    tls: bool = False  # whether it is driven through its port with TLS
    login: bool = False  # whether its clients show a token
    bare: bool = False  # no broker: the generator writes and syncs itself, in the workloads of latency only
    limit: bool = False  # no broker: it shows what generator or disk allow, and is no rival


class Broker:
    """One running broker, on a port of its own unless an address is given."""

    def __init__(self, kind: Kind, directory: Path, address: Address | None = None) -> None:
        self.kind = kind
        self.name = kind.name
        self.directory = directory
        self.address = address or Address(HOST, 0)
        self.start_seconds = 0.0
        self.pausing = True  # False for a broker that is alone
        self._server: Server | None = None

    def start(self) -> None:
        """Start it and wait until it opens a producer."""
        if self.kind.start is None:
            return
        started = time.perf_counter()
        self._server = self.kind.start(self.directory)
        self.address = Address(HOST, self._server.broker_port)
        if self.kind.tls:
            self.address = Address(HOST, self._server.tls_port, str(self.directory / AUTHORITY))
        if self.kind.login:
            self.address = self.address._replace(token=(self.directory / TOKEN).read_text())
        self._wait_until_ready(started + READY_SECONDS)
        self.start_seconds = time.perf_counter() - started

    def _wait_until_ready(self, limit: float) -> None:
        last = ""
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
        raise BrokerError(f"{self.name} opened no producer within {READY_SECONDS:.0f} s: {last}")

    def check(self) -> None:
        """Raise if it died."""
        if self._server is None or self._server.process is None or self._server.process.poll() is None:
            return
        tail = self._server.log.read_bytes()[-600:].decode(errors="replace")
        raise BrokerError(f"{self.name} ended; its last output:\n{tail}")

    def stop(self) -> None:
        """End it and everything that it started."""
        if self._server is not None:
            self._signal(signal.SIGCONT)
            self._server.stop()
            self._server = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let it run; paused before and after."""
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.pause()

    def pause(self) -> None:
        if self.pausing:
            self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def pids(self) -> list[int]:
        """The broker's processes; none if it is somebody else's."""
        process = self._server.process if self._server else None
        return process_tree(process.pid) if process else []

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


def start_magnetar_without_sync(directory: Path) -> Server:
    return magnetar.start(directory, settings={"journalSyncData": "false"})


def start_magnetar_compiled(directory: Path) -> Server:
    """The compiled build that `make compiled` has made of these sources. Raises BrokerError."""
    twin = ROOT / "build" / "compiled"
    if not (twin / "src").is_dir():
        raise BrokerError("magnetar-compiled: `make compiled` has to come first")
    return magnetar.start(directory, checkout=twin, environment={"MAGNETAR_BUILD": "compiled"})


def start_magnetar_before(directory: Path) -> Server:
    """The code of another checkout, named by ``MAGNETAR_BEFORE``; with the Python of its `.venv`, if it has one.

    Raises BrokerError.
    """
    checkout = Path(os.environ.get("MAGNETAR_BEFORE", ""))
    if not (checkout / "src" / "magnetar").is_dir():
        raise BrokerError("MAGNETAR_BEFORE must name a checkout; git worktree add /tmp/before HEAD~9 makes one")
    python = checkout / ".venv" / "bin" / "python"
    command = f"{shlex.quote(str(python))} -m magnetar.app.main standalone" if python.exists() else magnetar.COMMAND
    return magnetar.start(directory, checkout=checkout, command=command)


def start_apache_pulsar(directory: Path, **settings: str) -> Server:
    """Start Apache Pulsar with the memory that the project's reference figures were taken with."""
    os.environ.setdefault("PULSAR_MEM", PULSAR_MEMORY)
    return apache.start(directory, settings=settings)


def start_apache_pulsar_with_sync(directory: Path) -> Server:
    return start_apache_pulsar(directory, journalSyncData="true")


def certificates(directory: Path) -> dict[str, str]:
    """Settings of Pulsar's for a port with TLS, and the files they name: RSA with 2048 bits, as most brokers have."""
    from cryptography.hazmat.primitives.asymmetric import rsa
    from tests.support.certificates import Authority

    directory.mkdir(parents=True, exist_ok=True)
    shown = Authority(directory.resolve()).issue("broker", key=rsa.generate_private_key(65537, 2048))
    return {"tlsCertificateFilePath": shown.certificate_file, "tlsKeyFilePath": shown.key_file}


def start_magnetar_with_tls(directory: Path) -> Server:
    return magnetar.start(directory, settings={"brokerServicePortTls": "0", **certificates(directory)})


def start_magnetar_with_login(directory: Path) -> Server:
    """Start a broker with tokens and authorization; its role has what it needs by a grant of the namespace."""
    directory.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_bytes(32)
    (directory / "secret.key").write_bytes(secret)
    (directory / TOKEN).write_text(jwt.encode({"sub": "bench"}, secret, "HS256"))
    server = magnetar.start(
        directory,
        settings={
            "authenticationEnabled": "true",
            "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
            "tokenSecretKey": (directory / "secret.key").resolve().as_uri(),
            "authorizationEnabled": "true",
            "superUserRoles": "root",
            # with a login of its own the broker makes public/default
            "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
        },
    )
    grant = urllib.request.Request(
        f"{server.http_url}/admin/v2/namespaces/public/default/permissions/bench",
        b'["produce","consume"]',
        {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {jwt.encode({'sub': 'root'}, secret, 'HS256')}",
        },
        method="POST",
    )
    with urllib.request.urlopen(grant, timeout=READY_SECONDS):
        return server


def start_magnetar_with_tls_without_sync(directory: Path) -> Server:
    settings = {"brokerServicePortTls": "0", "journalSyncData": "false", **certificates(directory)}
    return magnetar.start(directory, settings=settings)


def start_apache_pulsar_with_tls(directory: Path, **settings: str) -> Server:
    port = free_ports(1)[0]
    server = start_apache_pulsar(directory, brokerServicePortTls=str(port), **certificates(directory), **settings)
    server.tls_port = port
    return server


def start_apache_pulsar_with_tls_and_sync(directory: Path) -> Server:
    return start_apache_pulsar_with_tls(directory, journalSyncData="true")


def start_sink(directory: Path, *options: str) -> Server:
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "benchmarks.load.sink", "--port", str(port), *options]
    server = spawn("sink", command, directory / "sink.log", environment={"PYTHONPATH": str(ROOT)})
    server.broker_port = port
    wait_until(server, lambda: listening(port), READY_SECONDS)
    return server


def start_sink_with_sync(directory: Path) -> Server:
    return start_sink(directory, "--file", str(directory / "synced"))


KINDS = (
    Kind("magnetar", "fsync before every receipt (group commit)", magnetar.start),
    Kind("pulsar-lite", "no fsync, ever", lite.start),
    Kind("apache-pulsar", "no fsync (the default of its standalone)", start_apache_pulsar),
    Kind("apache-pulsar-sync", "fsync before every receipt (journalSyncData=true)", start_apache_pulsar_with_sync),
    Kind("magnetar-nosync", "no fsync (journalSyncData=false)", start_magnetar_without_sync),
    Kind("magnetar-before", "the checkout that MAGNETAR_BEFORE names", start_magnetar_before),
    Kind("magnetar-compiled", "fsync before every receipt; the build of `make compiled`", start_magnetar_compiled),
    Kind("magnetar-tls", "fsync before every receipt; TLS 1.3 on the wire", start_magnetar_with_tls, tls=True),
    Kind("magnetar-login", "fsync before every receipt; tokens, authorization", start_magnetar_with_login, login=True),
    Kind("magnetar-tls-nosync", "no fsync; TLS 1.3 on the wire", start_magnetar_with_tls_without_sync, tls=True),
    Kind("apache-pulsar-tls", "no fsync; TLS 1.3 on the wire", start_apache_pulsar_with_tls, tls=True),
    Kind(
        "apache-pulsar-tls-sync",
        "fsync before every receipt (journalSyncData=true); TLS 1.3 on the wire",
        start_apache_pulsar_with_tls_and_sync,
        tls=True,
    ),
    Kind(
        "bare-sync",
        "no broker: 4 KB are appended and synced at the same rate, by the generator",
        None,
        bare=True,
        limit=True,
    ),
    Kind("sink", "stores nothing: the generator measured against a server that only answers", start_sink, limit=True),
    Kind(
        "sink-sync",
        "fsync before every receipt, and nothing else: the least that a server on a socket can do",
        start_sink_with_sync,
        limit=True,
    ),
)
BROKERS: dict[str, Kind] = {kind.name: kind for kind in KINDS}
DEFAULT = ("magnetar", "pulsar-lite", "apache-pulsar", "bare-sync")
RUNNING = Kind("running", "not known: somebody else's broker, only driven", None)
