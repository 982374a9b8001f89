"""The Java that Spark runs on: whether there is one, and one sentence that says what to do if not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from magnetar.model.errors import NotFoundError

_LEAST: Final = 17
_PATIENCE: Final = 30.0
_FIX: Final = (
    f"install Java {_LEAST} or 21 (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17), or let JAVA_HOME name it"
)


def check_java() -> None:
    """Check that Spark will find Java, without starting it. Raises NotFoundError."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not os.access(os.path.join(home, "bin", "java"), os.X_OK):
            raise NotFoundError(f"Spark needs Java, and JAVA_HOME is {home}, where there is no bin/java: {_FIX}")
    elif shutil.which("java") is None:
        raise NotFoundError(f"Spark needs Java, and there is none: {_FIX}")


def stated_version(text: str) -> int | None:
    """Return the major version in what ``java -version`` says; None if it says none."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    # Java 8 called itself 1.8.
    return int(found[2]) if found[1] == "1" and found[2] else int(found[1])


def explain_failed_start() -> str | None:
    """Return why Spark's Java ended at once, if it is too old or does not run; None if it seems to be right."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java, and {java} does not run ({error}): {_FIX}"
    version = stated_version(answer.stderr)
    if version is None:
        return f"Spark needs Java, and {java} does not say its version: {_FIX}"
    if version < _LEAST:
        return f"Spark needs Java {_LEAST}, and {java} is Java {version}: {_FIX}"
    return None
