"""A named pipe where a file is expected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

_SECONDS: Final = 5.0


@contextmanager
def named_pipe(path: Path) -> Iterator[str]:
    """Its path; who reads it waits for some seconds, instead of forever, and finds nothing."""
    os.mkfifo(path)
    writer = os.fdopen(os.open(path, os.O_RDWR), "wb")
    end = Timer(_SECONDS, writer.close)
    end.start()
    try:
        yield str(path)
    finally:
        end.cancel()
        writer.close()
