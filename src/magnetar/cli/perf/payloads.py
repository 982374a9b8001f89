"""What a producer of a test sends: random letters, or the lines of a file."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Final

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import read_without_waiting

SIZE_MAX: Final = 1 << 30
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
_LETTERS: Final = bytes(65 + byte % 26 for byte in range(256))


def payloads(size: int, file: str | None, delimiter: str) -> Sequence[bytes]:
    """Return the payloads, one of which is chosen for each message. Raises InvalidValueError, OSError."""
    if file is None:
        if not 0 <= size <= SIZE_MAX:
            raise InvalidValueError(f"--size: bytes from 0 to {SIZE_MAX} are expected, and not {size}")
        return [random.Random(0).randbytes(size).translate(_LETTERS)]
    if not delimiter:
        raise InvalidValueError("--payload-delimiter is not empty")
    try:
        text = read_without_waiting(file).decode().replace("\r\n", "\n")
        found = text.split("\n" if delimiter == "\\n" else delimiter)
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{file} is no text in UTF-8: {error}") from None
    found = [one for one in found if one]
    if not found:
        raise InvalidValueError(f"{file} is empty")
    return [one.encode() for one in found]


def delay_range(text: str | None, delay: int) -> tuple[int, int]:
    """Return the shortest and longest delay in milliseconds. Raises InvalidValueError."""
    if text is None:
        return delay, delay
    first, _, last = text.partition(",")
    if not (_MILLISECONDS.fullmatch(first) and _MILLISECONDS.fullmatch(last)) or int(first) > int(last):
        raise InvalidValueError(f"--delay-range {text!r}: write the shortest and the longest in milliseconds, 5,10")
    return int(first), int(last)
