"""Takes the numbers of this machine and of a broker; changes nothing but one temporary file in the data directory."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from magnetar.cli.doctor import judgements
from magnetar.cli.doctor.symptom import Level, Symptom
from magnetar.client.rest import RestRefusedError
from magnetar.compiled_build import running_build
from magnetar.model.errors import MagnetarError
from magnetar.runtime.clock import Clock
from magnetar.runtime.command_line import lost
from magnetar.spark.java.installation import stated_version
from magnetar.spark.java.options import option
from magnetar.storage.backends.sync_probe import sync_milliseconds

if TYPE_CHECKING:
    from magnetar.client.rest import Rest

_JAVA_SECONDS: Final = 10.0
_PORTS: Final = ((6650, "brokerServicePort"), (8080, "webServicePort"))
_CONNECT_SECONDS: Final = 1.0
NAMES: Final = ("python", "clock", "memory", "descriptors", "disk", "ports", "java", "spark", "broker")


class ThisMachine:
    """This machine, a data directory that exists or is to be made, and a broker that may run."""

    def __init__(self, data: Path, rest: Rest, clock: Clock) -> None:
        self._data = data
        self._rest = rest
        self._clock = clock
        self._checks: dict[str, Callable[[], Iterable[Symptom]]] = {
            "python": self._python, "clock": self._skew, "memory": self._memory, "descriptors": self._descriptors,
            "disk": self._disk, "ports": self._ports, "java": self._java, "spark": self._spark, "broker": self._broker,
        }  # fmt: skip

    def symptoms(self, names: Iterable[str]) -> Iterator[Symptom]:
        """Run the checks of these names, in this order. A check that fails is a symptom and stops no other."""
        for name in names:
            try:
                yield from self._checks[name]()
            except (OSError, ValueError) as error:
                yield Symptom(name, Level.FAILURE, f"could not be looked at: {error}")

    def _python(self) -> Iterator[Symptom]:
        loop = "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"
        yield judgements.python((sys.version_info.major, sys.version_info.minor), loop, str(running_build()))

    def _memory(self) -> Iterator[Symptom]:
        yield judgements.memory(available_memory(Path("/")))

    def _descriptors(self) -> Iterator[Symptom]:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 1 << 20
        yield judgements.descriptors(*(most if one == resource.RLIM_INFINITY else one for one in (soft, hard)))

    def _disk(self) -> Iterator[Symptom]:
        why = lost(str(self._data)) or _impossible(self._data)
        if why:
            yield Symptom("disk", Level.FAILURE, why, "choose another --data")
            return
        place = _existing(self._data)
        if not place.is_dir():
            words = f"{self._data} cannot be a directory: {place} is none"
            yield Symptom("disk", Level.FAILURE, words, "choose another --data")
            return
        yield judgements.space(shutil.disk_usage(place).free, file_system_of(place, Path("/proc/self/mounts")))
        try:
            with tempfile.TemporaryDirectory(prefix=".magnetar-doctor-", dir=place) as directory:
                yield judgements.sync_times(sync_milliseconds(Path(directory)))
        except OSError as error:
            yield Symptom(
                "fsync",
                Level.FAILURE,
                f"{place}: {error.strerror}",
                "the broker must be able to write there; see --data",
            )

    def _ports(self) -> Iterator[Symptom]:
        for number, setting in _PORTS:
            yield judgements.port(number, setting, _holder(number))

    def _java(self) -> Iterator[Symptom]:
        home = os.environ.get("JAVA_HOME")
        program = str(Path(home, "bin", "java")) if home else shutil.which("java")
        yield judgements.java(None if program is None else java_major(program))

    def _spark(self) -> Iterator[Symptom]:
        try:
            yield judgements.spark(importlib.metadata.version("pyspark"), archived=bool(option()))
        except importlib.metadata.PackageNotFoundError:
            yield judgements.spark(None)

    def _skew(self) -> Iterator[Symptom]:
        try:
            said = self._rest.exchange("GET", "/admin/v2/brokers/ready").headers.get("date", "")
        except MagnetarError:
            said = ""
        theirs = None if not said else parsedate_to_datetime(said).timestamp()
        yield judgements.clock_skew(None if theirs is None else theirs - self._clock.now_ms() / 1000)

    def _broker(self) -> Iterator[Symptom]:
        url = self._rest.url
        try:
            answer = self._rest.exchange("GET", "/admin/v2/brokers/ready")
        except RestRefusedError as refused:
            if refused.http_status == 401 and self._rest.credentials.method is not None:
                words = f"{url} answers and refuses the login: {refused}"
                yield Symptom("broker", Level.FAILURE, words, "--token, --client-conf or --context is another login")
                return
            if refused.http_status in (401, 403):
                yield Symptom("broker", Level.OK, f"{url} answers and asks for a login")
                return
            yield Symptom("broker", Level.FAILURE, f"{url} answers {refused.http_status}: {refused}")
        except MagnetarError as error:
            yield Symptom(
                "broker", Level.FAILURE, str(error), "magnetar standalone starts one; --admin-url names another"
            )
        else:
            if answer.content.strip() == b"ok":
                yield Symptom("broker", Level.OK, f"{url} is ready")
            else:
                words = f"{url} answers, and not as a broker does: a program of another kind has this port"
                yield Symptom("broker", Level.FAILURE, words, "--admin-url names the broker's HTTP address")


def _existing(path: Path) -> Path:
    """The path, or the nearest above it that exists."""
    path = path.absolute()
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def _impossible(path: Path) -> str:
    """Why no directory can have this name or be looked for there; empty if one can."""
    place = _existing(path)
    try:
        for part in path.absolute().relative_to(place).parts:
            _look(place / part)  # each by itself: below a directory that is missing none is looked at
        _look(path.absolute() / "ledgers")
    except OSError as error:
        return f"{path} cannot be a directory: {error.strerror}"
    return ""


def _look(path: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(path)


def available_memory(root: Path) -> int | None:
    """Bytes that programs may still take: what the kernel says, or less if this is a container with a limit."""
    found = re.search(r"^MemAvailable:\s+([0-9]+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    free = None if found is None else int(found[1]) << 10
    limit, used = (_text(root / "sys/fs/cgroup" / name).strip() for name in ("memory.max", "memory.current"))
    if limit.isdigit() and used.isdigit():
        left = max(0, int(limit) - int(used))
        return left if free is None else min(free, left)
    return free


def file_system_of(path: Path, mounts: Path) -> str:
    """The type of the file system that holds ``path``; empty if the system does not say."""
    best, kind = -1, ""
    for line in _text(mounts).splitlines():
        words = line.split(" ")
        if len(words) > 2:
            point = Path(words[1].replace("\\040", " "))
            if path.is_relative_to(point) and len(point.parts) > best:
                best, kind = len(point.parts), words[2]
    return kind


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _holder(number: int) -> str | None:
    """Who has a port on the loopback; None if no program answers there."""
    try:
        with socket.create_connection(("127.0.0.1", number), _CONNECT_SECONDS):
            return "a program that accepts connections, perhaps a broker"
    except OSError:
        return None


def java_major(program: str) -> int | None:
    """The version of a Java; None if it does not start."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return stated_version(done.stderr)
