"""Java's options for the archive of its classes: where it is, if there is one that holds for this Java and this Spark
(`magnetar.spark.class_archive` makes it; docs/decisions/065-class-archive.md).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Final

from magnetar.model.errors import MagnetarError, NotFoundError

BESIDE: Final = Path(__file__).parent / "__pycache__"
"""Where the one who installed magnetar keeps an archive for all users."""
_MAPPED: Final = "-XX:SharedArchiveFile="
WRITTEN: Final = "-XX:ArchiveClassesAtExit="
"""Java's option for the file that it is to write at its end."""
SILENT: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_CAREFUL: Final = f"-XX:+VerifySharedSpaces {SILENT}"
"""A byte that is not as it was written makes Java do without, and not fail later. It does not say which classes it
leaves out."""


def own_directory() -> Path:
    """Return where a user keeps an archive who may not write beside this module."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "magnetar"


def key() -> str:
    """Return what an archive holds for: this Java, and the files of this Spark. Raises NotFoundError."""
    from pyspark.find_spark_home import _find_spark_home

    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        raise NotFoundError("there is no Java here whose classes could be kept")
    jars = Path(_find_spark_home(), "jars")
    digest = hashlib.sha256()
    for file in (
        Path(java).resolve(),
        *sorted(Path(java).resolve().parents[1].glob("lib/server/*.so")),
        *sorted(jars.glob("*")),
    ):
        found = file.stat()
        digest.update(f"{file} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def find(name: str, *places: Path) -> Path | None:
    """Return the archive of that key in the first place that has one; a part of one is none.

    Java ends with SIGBUS where a mapped file is shorter than it says, so its length is a part of its name.
    """
    for place in places:
        try:
            for file in place.glob(f"spark-{name}-*.jsa"):
                length = re.fullmatch(r"spark-[0-9a-f]+-([0-9]+)\.jsa", file.name)
                status = file.lstat()
                ours = status.st_uid in (0, os.getuid()) and not status.st_mode & 0o022
                if length and stat.S_ISREG(status.st_mode) and ours and status.st_size == int(length[1]):
                    return file
        except OSError:
            continue
    return None


def option() -> str:
    """Return the options with which Java uses the archive; empty if there is none for this Java and Spark."""
    try:
        found = find(key(), BESIDE, own_directory())
    except (MagnetarError, OSError, RuntimeError):
        # The last: a user without a home, as containers have them.
        return ""
    return "" if found is None else quoted(_MAPPED, found) + " " + _CAREFUL


def with_archive(options: str) -> str:
    """Return Java's options and the archive; unchanged if they say something of an archive already."""
    if _MAPPED in options or WRITTEN in options or "-Xshare" in options:
        return options
    return f"{options} {option()}".strip()


def quoted(name: str, path: Path) -> str:
    """Return one option of Java as a word of ``spark.driver.extraJavaOptions``."""
    # Spark takes the words of the value apart as a shell does
    text = f"{name}{path}"
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"' if re.search(r"""[\s"'\\]""", text) else text
