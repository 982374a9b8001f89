"""What a producer of a test sends: random letters, or the lines of a file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from magnetar.model.errors import InvalidValueError


def payloads(size: int, file: str | None, delimiter: str) -> Sequence[bytes]:
    """Return the payloads, one of which is chosen for each message. Raises InvalidValueError, OSError."""
    if file is None:
        if size < 0:
            raise InvalidValueError("--size is not below 0")
        rng = random.Random(0)
        return [bytes(rng.choices(range(65, 91), k=size))]
    found = Path(file).read_text().split("\n" if delimiter == "\\n" else delimiter)
    found = [one for one in found if one]
    if not found:
        raise InvalidValueError(f"{file} is empty")
    return [one.encode() for one in found]


def delay_range(text: str | None, delay: int) -> tuple[int, int]:
    """Return the shortest and longest delay in milliseconds. Raises InvalidValueError."""
    if text is None:
        return delay, delay
    first, separator, last = text.partition(",")
    if not separator or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
        raise InvalidValueError(f"--delay-range {text!r}: write the shortest and the longest in milliseconds, 5,10")
    return int(first), int(last)
