"""Makes text that others wrote, such as names of topics, harmless to a terminal."""

from __future__ import annotations

import io
import re
from typing import Any, Final, TextIO

from typing_extensions import override

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control characters but tab and newline, and those that turn the direction of text or cannot be seen."""
_OF_LINES: Final = {ord("\n"): "\\n", ord("\t"): "\\t"}


def escaped(text: str) -> str:
    r"""Return a text without characters that act on a terminal: they are shown as ``\x1b``."""
    return _CONTROL.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    r"""Return a text as one line, without such characters: a newline in a name begins no line of its own, it is shown
    as ``\n``."""
    return escaped(text).translate(_OF_LINES)


def json_escaped(text: str) -> str:
    """Return a text of JSON, which stays JSON, without such characters within its strings."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class HarmlessStream(io.TextIOWrapper):
    """A terminal's stream that shows control characters in what is written, whoever put them there."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
        self.as_it_is = stream
        """The stream itself, for those who move the cursor or choose colours and escape what others wrote."""

    @override
    def write(self, text: str, /) -> int:
        super().write(escaped(text))
        return len(text)


def as_it_is(stream: TextIO) -> TextIO:
    """Return a stream that takes everything as it is written."""
    found: Any = getattr(stream, "as_it_is", stream)
    if found is not stream:
        stream.flush()
    return found  # type: ignore[no-any-return]  # one of both
