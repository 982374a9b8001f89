"""The clients as child processes, each of which takes jobs by lines; `tests.interop.encodings` says which."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from tests.interop.encodings import Fields

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
SOURCES: Final = ("Peer.java", "Values.java")
ANSWER_SECONDS_MAX: Final = 90.0
MEMORY: Final = "-Xmx512m"


class PeerFailedError(Exception):
    """A peer ended, or did not answer in time."""


class Peer:
    """A child process with one client of one broker."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            )  # fmt: skip
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def ask(self, **job: object) -> Fields:
        """Have it do a job, and return the answer. Raises PeerFailedError if there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=ANSWER_SECONDS_MAX)
        except (OSError, queue.Empty) as error:
            raise PeerFailedError(f"{self.name}: {error!r}; {self._tail()}") from error
        if not line:
            raise PeerFailedError(f"{self.name} ended with {self._process.wait()}; {self._tail()}")
        answer: Fields = json.loads(line)
        return answer

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-12:])

    def close(self) -> None:
        """End it: by the end of its jobs, or by force."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reading.join()
        self._process.stdout.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def java_classes(home: Path, place: Path) -> Path:
    """Compile the Java peer against the client of that unpacked distribution; returns where its classes are."""
    if not shutil.which("javac"):
        raise PeerFailedError("the Java peer needs a compiler: apt-get install openjdk-17-jdk-headless")
    classes = place / "classes"
    command = ["javac", "-nowarn", "-cp", f"{home}/lib/*", "-d", classes, *(HERE / name for name in SOURCES)]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerFailedError(f"javac: {done.stderr[-3_000:]}")
    return classes


def commands(home: Path | None, place: Path) -> dict[str, Callable[[str], list[str | Path]]]:
    """Return how each client's peer is started for a broker's address; Java's only where its ``home`` is."""
    python = sys.executable
    found: dict[str, Callable[[str], list[str | Path]]] = {
        "ours": lambda url: [python, "-m", "tests.interop.threaded_peer", "magnetar", url],
        "ours-asyncio": lambda url: [python, "-m", "tests.interop.asyncio_peer", url],
        "official": lambda url: [python, "-m", "tests.interop.threaded_peer", "pulsar", url],
    }
    if home is not None:
        classes = java_classes(home, place)
        found["java"] = lambda url: [
            "java", MEMORY, "-Duser.timezone=UTC", "-Dlog4j2.level=error", "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED", "-Dio.netty.tryReflectionSetAccessible=true",
            "-cp", f"{classes}:{home}/lib/*", "interop.Peer", url,
        ]  # fmt: skip
    return found


@contextlib.contextmanager
def started(clients: Sequence[str], url: str, home: Path | None, place: Path) -> Iterator[dict[str, Peer]]:
    """Run the peers of these clients against a broker; their logs go to ``place``."""
    ways = commands(home if "java" in clients else None, place)
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(Peer(name, ways[name](url), place / f"{name}.log")) for name in clients}
