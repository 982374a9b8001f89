"""The code blocks of README.md and docs/: where they stand, in what language, and as they are when run by a test.

Only addresses of brokers and directories outside of the checkout are replaced, by those of the test.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BROKER: Final = re.compile(r"pulsar://(?:localhost|127\.0\.0\.1):6650")
_SECURED: Final = "pulsar+ssl://"
_OUTSIDE: Final = re.compile(r"(?<![\w.:/-])/(?=(?:lake|data|mnt)/)")


SIGNATURES: Final = {"docs/api.md"}
"""Pages whose Python is signatures and no programs."""


class Snippet(NamedTuple):
    file: str
    """Relative to the checkout."""
    line: int
    language: str
    """Empty: output, a format or a drawing."""
    text: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    def at(self, url: str, directory: Path) -> str:
        """Return the text with the test's broker and directory put in."""
        return _OUTSIDE.sub(f"{directory}/", _BROKER.sub(url, self.text))


def snippets() -> list[Snippet]:
    """All, in order."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text()
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            found.append(Snippet(str(path.relative_to(ROOT)), line, match[1], match[2]))
    return found


def secured(language: str) -> list[Snippet]:
    """Those for `broker.example.com`, which has TLS and logins: tests/spark/test_secured.py runs them at such a one."""
    return [one for one in snippets() if one.language == language and f"{_SECURED}broker.example.com" in one.text]


def python(*, spark: bool) -> list[Snippet]:
    """Those that need a Spark session (in each file from the first one on that speaks of Spark), or the others.

    Those of `secured` are neither.
    """
    found, met = [], set()
    for one in snippets():
        if one.language == "python" and one.file not in SIGNATURES and _SECURED not in one.text:
            met |= {one.file} if "spark" in one.text else set()
            if (one.file in met) is spark:
                found.append(one)
    return found


def commands(snippet: Snippet) -> list[list[str]]:
    """Return the commands of a shell snippet: words without comments and without the file that output goes to, lines
    that go on put together."""
    lines = snippet.text.replace("\\\n", " ").splitlines()
    found = (shlex.split(line, comments=True) for line in lines)
    return [words[: words.index(">")] if ">" in words else words for words in found if words]
