"""One class of Apache Pulsar's tests, run in a Java process of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.apache_tests.class_path import ClassPath

ROOT: Final = Path(__file__).parent.parent.parent
OPENED: Final = ("java.lang", "java.util", "java.util.concurrent", "java.nio", "sun.net", "jdk.internal.misc")
MEMORY: Final = "-Xmx1g"
LOGGING: Final = """<Configuration status="WARN">
<Appenders>
<Console name="c" target="SYSTEM_ERR"><PatternLayout pattern="%d %-5p %c{1} - %m%n%throwable{5}"/></Console>
</Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="c"/></Root></Loggers>
</Configuration>
"""
MARK: Final = "@@"
"""What a line of `Verdicts` begins with."""


class Verdict(NamedTuple):
    """What became of one test: PASS, FAIL, SKIP, SETUP (it could not begin), INSIDE (it asks for the inside of
    Apache Pulsar's broker), REFUSED (magnetar does not start with its settings)."""

    word: str
    test: str
    milliseconds: int
    reason: str


def verdicts(output: str) -> list[Verdict]:
    """The verdicts in what a run printed."""
    result = []
    for line in output.splitlines():
        mark, *parts = line.split("\t")
        if mark == MARK and len(parts) == 4:
            word, test, milliseconds, reason = parts
            result.append(Verdict(word, test, int(milliseconds), reason))
    return result


def run(class_path: ClassPath, name: str, results: Path, seconds: float, sources: Path) -> tuple[list[Verdict], bool]:
    """Run the test class ``name`` (or ``class#method``) for at most ``seconds``.

    Writes its output, its log and that of the last brokers to ``results``. Returns the verdicts, and whether it came to
    its end.
    """
    kind, _, method = name.partition("#")
    chosen = ["-methods", f"{kind}.{method}"] if method else ["-testclass", kind]
    results.mkdir(parents=True, exist_ok=True)
    short = results / kind.rpartition(".")[2]
    with tempfile.TemporaryDirectory(prefix="apache-test-", ignore_cleanup_errors=True) as temporary:
        logging = Path(temporary) / "log4j2.xml"
        logging.write_text(LOGGING)
        command = [
            "java", MEMORY, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={temporary}",
            f"-Dlog4j.configurationFile={logging}", "-Dio.netty.tryReflectionSetAccessible=true",
            "-Dmagnetar=" + "\n".join([sys.executable, "-m", "magnetar"]),
            *(part for package in OPENED for part in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")),
            "-cp", str(class_path), "StandIn", "-verbose", "0", "-usedefaultlisteners", "false",
            "-configfailurepolicy", "continue", "-listener", "Verdicts", "-d", f"{temporary}/testng", *chosen,
        ]  # fmt: skip
        ended = _bounded(command, class_path.place, short, seconds, sources)
        for log in sorted(Path(temporary).glob("broker*/broker.log"), key=lambda path: path.stat().st_mtime)[-1:]:
            shutil.copy(log, short.with_suffix(".broker.log"))
    return verdicts(short.with_suffix(".out").read_text(errors="replace")), ended


def _bounded(command: Sequence[str], place: Path, short: Path, seconds: float, sources: Path) -> bool:
    with short.with_suffix(".out").open("wb") as out, short.with_suffix(".err").open("wb") as err:
        environment = {**os.environ, "PYTHONPATH": str(sources)}
        environment.pop(
            "PYTHONDONTWRITEBYTECODE", None
        )  # each test starts a broker, which would compile what it imports
        # a session of its own, so that its brokers end with it
        process = subprocess.Popen(
            command,
            cwd=place,
            stdout=out,
            stderr=err,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
