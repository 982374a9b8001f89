"""Reader of Java properties files, the format of broker.conf and standalone.conf.

``key=value``, ``key: value`` or ``key value``; ``#`` and ``!`` begin comment lines; a backslash at the end of a line
joins it with the next one; ``\\t \\n \\r \\f \\uXXXX`` and a backslash before any other character as in Java.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

BYTES_MAX: Final = 4 << 20
"""No file of settings has so many; Apache Pulsar's own have a hundredth of it."""

_KEY: Final = re.compile(r"((?:\\.|[^\\=:\s])+)\s*[=:]?\s*(.*)", re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
"""Line ends of Java; Python's splitlines knows more, which may be part of a value or a comment."""
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
_TOKEN: Final = re.compile(r"eyJ[\w.-]*", re.ASCII)
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One key with its value and the number of the line it begins on."""

    line: int
    key: str
    value: str


def properties_text(path: Path) -> str:
    """Read a file whole. Raises OSError, and ValueError for one that is too large or no UTF-8, or a pipe into which
    nobody writes: waiting for that, a command hears no signal."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "rb") as file:
        content = file.read(BYTES_MAX + 1)
        if not content and stat.S_ISFIFO(os.fstat(handle).st_mode):
            raise ValueError("it is a pipe into which nobody writes; name a file")
    if len(content) > BYTES_MAX:
        raise ValueError(f"it has more than {BYTES_MAX} bytes, which no file of settings has")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8 (byte {content[error.start]:#04x})") from None


def shown_name(name: str) -> str:
    """Return a name that is not known as it may be shown: what does not look like a name may be a secret that stands in
    the wrong place, as a token whose line was broken."""
    if _PLAIN_NAME.fullmatch(name) and not _TOKEN.fullmatch(name):
        return name
    return f"a text of {len(name)} characters, which is not shown"


def read_properties(text: str) -> Iterator[Property]:
    """Yield all keys in their order; a key that comes twice is yielded twice (the later one counts).

    A byte order mark, which editors of Windows write, is no part of the first key.
    """
    begun, first = "", 0
    for number, raw in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        line = raw.lstrip()
        if not begun and (not line or line[0] in "#!"):
            continue
        first = first or number
        begun += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        yield from _property(first, begun)
        begun, first = "", 0
    if begun:
        yield from _property(first, begun)


def words(text: str) -> tuple[str, ...]:
    """The members of a list separated by commas, once each and in their order.

    Brackets around the whole are no part of the names: Java prints a set in them, and Pulsar's own examples have them.
    """
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    return tuple(dict.fromkeys(word for part in inner.split(",") if (word := part.strip())))


def _property(line: int, text: str) -> Iterator[Property]:
    found = _KEY.match(text)
    if found is not None:
        yield Property(line, _unescape(found[1]), _unescape(found[2]).rstrip())


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # characters beyond 16 bits come as two escapes
    return _ESCAPE.sub(_escaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped(found: re.Match[str]) -> str:
    body = found[1]
    if len(body) == 5:
        return chr(int(body[1:], 16))
    return _CONTROL.get(body, body)
