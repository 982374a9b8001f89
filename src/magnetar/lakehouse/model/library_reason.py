"""Says in one line why a table's library could not do something; pure."""

from __future__ import annotations

import re
from typing import Final

_REASON_MAX: Final = 300
"""Characters."""
_DUMP: Final = re.compile(r":? *\w+ \{ .*", re.DOTALL)
"""An object as Rust shows it for debugging, and what follows."""


def reason_of(error: BaseException) -> str:
    """Return why a library cannot read a table, in one line of a readable length.

    The libraries of Delta are written in Rust, and put whole objects into a text.
    """
    line = _DUMP.sub("", str(error).strip().partition("\n")[0])
    shown = line if len(line) <= _REASON_MAX else f"{line[:_REASON_MAX]}..."
    return f"{type(error).__name__}: {shown}"
