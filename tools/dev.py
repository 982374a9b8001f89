"""One program for every chore of the project; the Makefile only names its commands.

Needs nothing but Python 3.11 or later: it makes `.venv`, installs the locked dependencies there (again only when a lock
file changed) and runs the rest inside it. `python3 tools/dev.py help` lists the commands.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
LOCKS = ROOT / "requirements"
GENERATED = ROOT / "src" / "magnetar" / "protocol" / "generated"
JAVA_PACKAGE = "openjdk-17-jre-headless"
REST: tuple[str, ...] = ()
"""What no other run names."""
HALF_OF_UNIT = tuple(f"tests/unit/{name}" for name in ("client", "columnar", "delivery", "storage", "topic"))
"""About half of what tests/unit takes: as one run it was the last to end, with nothing beside it for two minutes."""
SPARK = (("tests/spark", "-m", "not drivers"), ("tests/spark", "-m", "drivers"))
"""Runs that start Java some dozens of times, in half the processor time once its classes are archived."""
RUNS = (
    *SPARK,
    ("tests/admin",),
    ("tests/app",),
    HALF_OF_UNIT,
    ("tests/unit", *(f"--ignore={name}" for name in HALF_OF_UNIT)),
    REST,
    ("tests/sim",),
    ("tests/hostile",),
    ("tests/wire",),
    ("tests/conformance",),
)
"""Runs of pytest in the order in which they begin: what is long first, and of that what waits most.

A broker waits for the disk and the clock in four fifths of a test's time: such runs need others beside them from the
beginning, not at the end.
"""
AT_ONCE = 6
"""Runs at a time, on two cores: with four of them the cores had nothing to do in a third of the time."""


def environment() -> dict[str, str]:
    """Return that of every command: `.venv` first on PATH, and compiled modules are kept.

    Where PYTHONDONTWRITEBYTECODE is set, as images often have it, each of the hundreds of processes that tests start
    would compile everything it imports: half a second for a broker.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PATH": f"{BIN}:{os.environ.get('PATH', '')}"}


def call(*command: str | Path, check: bool = True, env: dict[str, str] | None = None) -> int:
    """Run a command in the project's root; stop on failure if ``check``."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env={**environment(), **(env or {})}, check=False)
    if check and done.returncode:
        sys.exit(done.returncode)
    return done.returncode


def install(lock: str) -> None:
    """Make `.venv` and install ``requirements/<lock>.lock`` into it, unless that very file is installed already.

    One process at a time: of two in a fresh checkout the second found an environment without pip.
    """
    with (ROOT / "Makefile").open("rb") as only:
        fcntl.flock(only, fcntl.LOCK_EX)
        make_environment()
        path = LOCKS / f"{lock}.lock"
        stamp = VENV / f".installed-{lock}"
        digest = hashlib.sha256(path.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text() == digest:
            return
        print(f"installing {path.relative_to(ROOT)}", flush=True)
        fill(BIN / "python", "--require-hashes", "-r", path)
        fill(BIN / "python", "--no-deps", "-e", ROOT)
        stamp.write_text(digest)


def make_environment() -> None:
    """Make `.venv` where there is none, or only what an interrupted one left: a Python without pip."""
    if not (BIN / "python").exists() or not ((BIN / "pip").exists() or (BIN / "uv").exists()):
        print("making .venv", flush=True)
        if subprocess.run([sys.executable, "-m", "venv", VENV], check=False).returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            sys.exit("could not make .venv; on Debian the missing part is: apt-get install python3-venv")
    tell_other_python()


def refuse_old_python() -> None:
    """Stop before anything is installed or made, Java too, where the Python is too old."""
    if sys.version_info < (3, 11):
        sys.exit(f"magnetar needs Python 3.11 or later; {sys.executable} is {sys.version.split()[0]}")


def tell_other_python() -> None:
    """Say it where `.venv` is of another Python than the one that runs this: the commands run with that of `.venv`."""
    if not (VENV / "pyvenv.cfg").exists():
        return  # not made by venv: whoever made it knows
    lines = (VENV / "pyvenv.cfg").read_text().splitlines()
    made = next((line.partition("=")[2].strip() for line in lines if line.startswith("version")), "")
    this = sys.version.split()[0]
    if made.split(".")[:2] != this.split(".")[:2]:
        print(
            f".venv is of Python {made}, not of this {this}, and is used; `make clean` first for one of {this}",
            flush=True,
        )


def fill(python: Path, *wanted: str | Path) -> None:
    """Install into the environment of that Python: with uv, in a fifth of pip's time, or with pip where it fails."""
    uv = BIN / "uv"
    if not uv.exists():
        lines = (LOCKS / "all.lock").read_text().splitlines()
        pinned = itertools.takewhile(
            lambda line: line.startswith(("uv==", " ")), itertools.dropwhile(lambda x: not x.startswith("uv=="), lines)
        )
        with tempfile.NamedTemporaryFile("w", suffix=".lock") as only:
            only.write("\n".join(pinned) + "\n")
            only.flush()
            call(BIN / "python", "-m", "pip", "install", "-q", "--require-hashes", "-r", only.name, check=False)
    if not uv.exists() or call(uv, "pip", "install", "-q", "--python", python, *wanted, check=False):
        call(python, "-m", "pip", "install", "-q", *wanted)


def install_generators() -> None:
    """Make `.venv-generators`, where the generators of clients live: they take no typer as new as ours."""
    home, path = ROOT / ".venv-generators", LOCKS / "generators.lock"
    stamp, digest = home / ".installed", hashlib.sha256(path.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    print(f"installing {path.relative_to(ROOT)}", flush=True)
    call(sys.executable, "-m", "venv", "--clear", home)
    fill(home / "bin" / "python", "--require-hashes", "-r", path)
    stamp.write_text(digest)


def ensure_java() -> None:
    """Spark needs Java 17; install it where that is possible, else say what to install."""
    if shutil.which("java"):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"installing {JAVA_PACKAGE} for Spark", flush=True)
        if (
            subprocess.run(["apt-get", "update", "-q"], check=False).returncode == 0
            and subprocess.run(["apt-get", "install", "-y", "-q", JAVA_PACKAGE], check=False).returncode == 0
        ):
            return
    sys.exit(f"Spark needs Java 17 or later: apt-get install {JAVA_PACKAGE} (the broker itself needs no Java)")


class Programme(NamedTuple):
    """A module that is run with the arguments ``given``, then those of the command line."""

    module: str
    about: str
    java: bool = False
    given: tuple[str, ...] = ()

    def run(self, arguments: Sequence[str]) -> None:
        """Install what it needs, and run it; stop on failure."""
        if self.java:
            ensure_java()
        install("all")
        call(BIN / "python", "-m", self.module, *self.given, *arguments)


def run(arguments: Sequence[str]) -> None:
    """set up what the broker needs and start `magnetar standalone`, data under ./data"""
    install("run")
    os.chdir(ROOT)
    os.execv(BIN / "magnetar", ["magnetar", "standalone", *arguments])


def check(arguments: Sequence[str]) -> None:
    """formatting, lint, types, layers"""
    install("all")
    call(BIN / "ruff", "format", "--check", "--quiet")
    call(BIN / "ruff", "check", "--quiet")
    call(BIN / "lint-imports")
    call(BIN / "mypy")


def compiled(arguments: Sequence[str]) -> None:
    """the compiled build, in build/compiled/src (docs/decisions/058)"""
    install("all")
    call(BIN / "python", "-m", "tools.compiled", *arguments)


def test(arguments: Sequence[str]) -> None:
    """check and every test, several runs side by side (arguments are pytest's: then in one)"""
    ensure_java()
    if arguments:
        check([])
        call(BIN / "pytest", *arguments)
        return
    install("all")
    install_generators()
    others = tuple(f"--ignore={name}" for name in sorted({run[0] for run in RUNS if run not in (REST, HALF_OF_UNIT)}))
    with Runs([others if run == REST else run for run in RUNS], AT_ONCE) as runs:
        check([])
        if failed := runs.finish():
            sys.exit(failed)


class Runs:
    """Runs of pytest, some at a time; what one prints is shown when it has ended.

    Those of Spark begin when Java's classes are archived; where they cannot be, these are slower, and skip one test.
    """

    def __init__(self, waiting: Sequence[Sequence[str]], at_once: int) -> None:
        self._waiting = list(waiting)
        self._going: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._failed, self._stopped = 0, False
        self._threads = [threading.Thread(target=self._work) for _ in range(at_once)]
        self._archive = threading.Thread(target=self._call, args=("python", "-m", "magnetar.spark.class_archive"))
        if any(run in SPARK for run in waiting):
            self._threads.insert(0, self._archive)

    def __enter__(self) -> Runs:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End what goes on, as Ctrl-C does: a run ends its brokers and its Java. Nothing if all have ended."""
        with self._lock:
            self._stopped = True
            for process in self._going:
                process.send_signal(signal.SIGINT)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                run = self._waiting.pop(0)
            if run in SPARK:
                self._archive.join()
            if failed := self._call("pytest", *run):
                self._failed = failed

    def _call(self, program: str, *arguments: str) -> int:
        """Run it, unless all were stopped; return its exit status."""
        with tempfile.TemporaryFile() as output:
            began = time.monotonic()
            with self._lock:
                if self._stopped:
                    return 0
                process = subprocess.Popen(
                    [BIN / program, *arguments], cwd=ROOT, env=environment(), stdout=output, stderr=output
                )
                self._going.add(process)
            failed = process.wait()
            with self._lock:
                self._going.discard(process)
                output.seek(0)
                print(f"{program} {' '.join(arguments)}: {time.monotonic() - began:.0f} s")
                print(output.read().decode(errors="replace"), flush=True)
        return failed

    def finish(self) -> int:
        """Wait for all, and return the exit status of one that failed, or 0."""
        for thread in self._threads:
            thread.join()
        return self._failed


PROGRAMMES = {
    "demo": Programme("examples.demo.run", "336,776 real flights through broker and Spark", java=True),
    "bench": Programme("benchmarks.run", "throughput and latency beside pulsar-lite and Apache Pulsar"),
    "bench-spark": Programme("benchmarks.spark_rows", "rows per second that Spark reads and writes", java=True),
    "oracle": Programme("tests.conformance", "ask Apache Pulsar and magnetar the same questions and print differences"),
    "official": Programme("tools.official", "run the official Python client's own suite against a running broker"),
    "judges": Programme(
        "tools.official_tools", "run Apache Pulsar's own command line tools against it and magnetar, compare", java=True
    ),
    "apache-tests": Programme(
        "tools.apache_tests", "run Apache Pulsar's tests of its own broker against magnetar", java=True
    ),
    "interop": Programme(
        "tests.interop", "ours, the official Python client and Java's write and read every encoding, twice", java=True
    ),
    "wire": Programme(
        "tests.wire.on_apache", "the tests of our clients at Apache Pulsar (pytest's arguments)", java=True
    ),
    "crash": Programme("tests.crash.rounds", "kill -9 rounds under load (ROUNDS=200)"),
    "client-seeds": Programme(
        "tests.client_seeds",
        "the client through crashes: 2,015 seeds, cancellation everywhere, 10,000 create/close cycles",
    ),
    "mutants": Programme("tools.mutants", "single faults put into a copy of the product: which do tests not notice"),
    "hostile": Programme("tests.hostile.programme", "everything one client can do to a broker, beside a witness"),
    "once": Programme("tests.spark.rounds", "effectively once on real Spark: tasks, driver and broker are killed"),
    "cluster": Programme(
        "examples.demo.run",
        "the demo on a Spark standalone cluster of two workers, started for it",
        given=("--workers", "2"),
    ),
}
"""The longer programmes; each prints its own arguments for ARGS=--help."""


def churn(arguments: Sequence[str]) -> None:
    """Key_Shared while consumers join, leave, pause and die: 1,000 seeds, half of them with each way to cut keys."""
    install("all")
    tests = "tests/unit/topic/subscription/test_subscription_churn.py"
    call(BIN / "python", "-m", "pytest", "-x", tests, "-k", "key_shared", *arguments, env={"MAGNETAR_SEEDS": "62.5"})


def damage(arguments: Sequence[str]) -> None:
    """500 seeded damages to every kind of file: each harmless, named or refused, and nothing that is kept changes"""
    install("all")
    call(BIN / "python", "-m", "pytest", "-s", "tests/damage", *arguments, env={"MAGNETAR_DAMAGE_CASES": "500"})


def proto(arguments: Sequence[str]) -> None:
    """compile src/magnetar/protocol/pulsar.proto"""
    install("all")
    source = GENERATED.parent / "pulsar.proto"
    made = (f"--python_out={GENERATED}", f"--mypy_out={GENERATED}")
    call(BIN / "python", "-m", "grpc_tools.protoc", f"--proto_path={source.parent}", *made, source)
    # The plugin does not write what these two settings demand of code that people write.
    stub = GENERATED / "pulsar_pb2.pyi"
    stub.write_text('# mypy: disable-error-code="explicit-override,mutable-override"\n' + stub.read_text())


def lock(arguments: Sequence[str]) -> None:
    """resolve pyproject.toml anew into requirements/*.lock"""
    install("all")
    common = ["--quiet", "--generate-hashes", "--universal", "--no-emit-index-url", "--no-header"]
    common.append("--python-version=3.11")
    call(BIN / "uv", "pip", "compile", *common, "pyproject.toml", "-o", LOCKS / "run.lock")
    call(
        BIN / "uv", "pip", "compile", *common, "--extra=pipelines", "--group=dev", "-c", LOCKS / "run.lock",
        "pyproject.toml", "-o", LOCKS / "all.lock",
    )  # fmt: skip
    call(BIN / "uv", "pip", "compile", *common, LOCKS / "generators.in", "-o", LOCKS / "generators.lock")


def clean(arguments: Sequence[str]) -> None:
    """remove everything that the other commands made, but not ./data"""
    caches = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache")
    for name in (".venv", ".venv-generators", "dist", "build", *caches):
        shutil.rmtree(ROOT / name, ignore_errors=True)


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    **{command.__name__: command for command in (run, test, check, compiled)},
    **{name: programme.run for name, programme in PROGRAMMES.items()},
    **{command.__name__: command for command in (churn, damage, lock, proto, clean)},
}


def main() -> None:
    # in the background of a script SIGINT is ignored, by what is started too: neither a lane could be stopped by it nor
    # a test that sends it to itself
    signal.signal(signal.SIGINT, signal.default_int_handler)
    name, *rest = sys.argv[1:] or ["help"]
    if name in COMMANDS:
        refuse_old_python()
        try:
            COMMANDS[name](rest)  # also a --help, which is the command's: make run ARGS=--help
        except KeyboardInterrupt:
            sys.exit(130)
        return
    for one, command in COMMANDS.items():
        print(f"  make {one:12} {PROGRAMMES[one].about if one in PROGRAMMES else command.__doc__}")
    if name not in ("help", "-h", "--help"):
        sys.exit(f"there is no {name!r}; the lines above are what there is")


if __name__ == "__main__":
    main()
