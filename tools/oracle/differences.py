"""Where two answers differ, and which differences are on purpose.

`docs/differences.md` lists the latter: a line `- `probe-id`: reason` each, under any heading. A probe in that list may
differ; one that is listed and does not differ any more must be taken off, so that the list stays true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.oracle.answers import Json

FILE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
LINE = re.compile(r"^- `([a-z0-9-]+)`: (\S.*)$", re.MULTILINE)
ABSENT = "<absent>"


def on_purpose(file: Path = FILE) -> dict[str, str]:
    """Reasons by probe id."""
    if not file.exists():
        return {}
    return {found[1]: found[2] for found in LINE.finditer(file.read_text())}


def between(theirs: Json, ours: Json, path: str = "") -> Iterator[str]:
    """One line per place where the answers differ: the path to it, theirs, ours."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from between(theirs.get(key, ABSENT), ours.get(key, ABSENT), f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from between(one, other, f"{path}/{index}")
    elif theirs != ours:
        yield f"{path or '/'}\n      theirs {theirs!r}\n      ours   {ours!r}"
