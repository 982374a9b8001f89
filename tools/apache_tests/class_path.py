"""What Apache Pulsar's tests need: their published classes, test libraries, the distribution, and our stand-in."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.servers.apache import VERSION, cache, home

SOURCES: Final = Path(__file__).parent / "java"
TESTS: Final = f"org.apache.pulsar:pulsar-broker:{VERSION}:jar:tests"
ARTIFACTS: Final = (
    TESTS,
    f"org.apache.pulsar:buildtools:{VERSION}",
    f"org.apache.pulsar:testmocks:{VERSION}",
    f"org.apache.pulsar:pulsar-metadata:{VERSION}:jar:tests",
    f"org.apache.pulsar:pulsar-package-core:{VERSION}:jar:tests",
    "org.apache.curator:curator-test:5.7.1",
    "org.assertj:assertj-core:3.24.2",
    "org.awaitility:awaitility:4.2.0",
    "org.hamcrest:hamcrest:2.2",
    "org.mockito:mockito-core:5.6.0",
    "org.objenesis:objenesis:3.3",
    "net.bytebuddy:byte-buddy:1.14.12",
    "net.bytebuddy:byte-buddy-agent:1.14.12",
    "org.testng:testng:7.7.1",
    "com.beust:jcommander:1.82",
    "org.webjars:jquery:3.6.1",
    "io.opentelemetry:opentelemetry-sdk-testing:1.45.0",
)
"""The tests and the libraries that they were compiled with, by Maven's coordinates."""
BASES: Final = ("MockedPulsarServiceBaseTest", "TransactionTestBase", "MockedPulsarStandalone")
"""The base classes whose broker can be replaced."""


class ClassPath:
    """The directories and archives that a run of the tests has on its class path, all under ``place``."""

    def __init__(self, place: Path | None = None) -> None:
        self.place = place or cache() / f"tests-{VERSION}"
        self.classes = self.place / "classes"
        self._jars = self.place / "jars"
        self._stand_in = self.place / f"stand-in-{digest(SOURCES.glob('*.java'))}"

    def __str__(self) -> str:
        libraries = sorted(path for path in self._jars.glob("*.jar") if not path.name.startswith("pulsar-broker-"))
        # Apache's own libraries come last: they bring older versions of what the tests need
        return os.pathsep.join(map(str, [self._stand_in, self.classes, *libraries, home() / "lib" / "*"]))

    def prepare(self) -> None:
        """Get and unpack what is missing, and compile the stand-in. Raises subprocess.CalledProcessError."""
        home()
        self._jars.mkdir(parents=True, exist_ok=True)
        for artifact in ARTIFACTS:
            self._get(artifact)
        if not self.classes.exists():
            unpacking = self.place / "unpacking"
            shutil.rmtree(unpacking, ignore_errors=True)
            with zipfile.ZipFile(self._jars / f"pulsar-broker-{VERSION}-tests.jar") as archive:
                archive.extractall(unpacking)
            # the tests name certificates by their place in Apache's tree
            resources = self.place / "src" / "test" / "resources"
            resources.parent.mkdir(parents=True, exist_ok=True)
            resources.unlink(missing_ok=True)
            resources.symlink_to(self.classes)
            unpacking.rename(self.classes)
        if not self._stand_in.exists():
            self._compile()

    def _compile(self) -> None:
        # a directory of its own for each state of the sources: another run may be using the last one
        with tempfile.TemporaryDirectory(dir=self.place, prefix="compiling-", ignore_cleanup_errors=True) as temporary:
            compiled = Path(temporary) / "classes"
            subprocess.run(
                ["javac", "-nowarn", "-d", compiled, "-cp", str(self), *sorted(SOURCES.glob("*.java"))],
                check=True, timeout=300,
            )  # fmt: skip
            with contextlib.suppress(OSError):
                compiled.rename(self._stand_in)

    def _get(self, artifact: str) -> None:
        _, name, version, *rest = artifact.split(":")
        if (self._jars / f"{name}-{version}{'-tests' if rest else ''}.jar").exists():
            return
        goal = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={self._jars}"]
        subprocess.run(["mvn", "-q", "-B", "-Dstyle.color=never", *goal], check=True, cwd=self.place, timeout=600)

    def test_classes(self) -> list[str]:
        """The names of all test classes whose broker can be replaced, sorted."""
        names = [
            ".".join(path.relative_to(self.classes).with_suffix("").parts)
            for path in self.classes.rglob("*.class")
            if "$" not in path.name
        ]
        listing = subprocess.run(
            ["javap", "-cp", str(self), *names], check=True, capture_output=True, text=True, timeout=300
        ).stdout
        return with_a_broker(listing)


def digest(files: Iterable[Path]) -> str:
    """A short name for the content of ``files``."""
    found = hashlib.sha256()
    for path in sorted(files):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def with_a_broker(listing: str) -> list[str]:
    """The classes of a listing by `javap` that are no base classes and inherit from one of BASES, sorted."""
    heads = re.findall(r"^(.*)class ([\w.]+)(?:<.*?>)?(?: extends ([\w.]+))?", listing, re.MULTILINE)
    parents = {name: parent for _, name, parent in heads}
    abstract = {name for before, name, _ in heads if "abstract" in before}

    def has_broker(name: str) -> bool:
        while name := parents.get(name, ""):
            if name.rpartition(".")[2] in BASES:
                return True
        return False

    return [name for name in sorted(parents) if name not in abstract and has_broker(name)]
