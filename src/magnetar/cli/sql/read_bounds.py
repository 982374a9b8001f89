"""What a query may read and use at most, counted over all its tables; one that needs more ends with the next step."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from magnetar.cli.output.figures import count_in_words, size_in_words
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.runtime.clock import steady_seconds


class QueryBoundError(MagnetarError):
    """A query that reads more, or longer, than it may."""


@dataclass(kw_only=True)
class ReadBounds:
    """The bounds of one query, and how far it is. Threads that read different tables share it."""

    max_rows: int
    """0: no bound, as of the other two."""
    max_bytes: int
    """Bytes of the columns that the query uses, as they are in memory."""
    timeout: float
    """Seconds."""
    max_memory: int = 0
    """Bytes that the process may hold more than when the query began: a join can be far larger than what it reads."""
    rows: int = field(default=0, init=False)
    size: int = field(default=0, init=False)
    failure: Exception | None = field(default=None, init=False)
    """Why reading ended: the engine makes a text of it."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        flags = ("max-rows", "max-bytes", "timeout", "max-memory")
        values = (self.max_rows, self.max_bytes, self.timeout, self.max_memory)
        for flag, value in zip(flags, values, strict=True):
            if not 0 <= value < 1 << 62:
                raise InvalidValueError(f"--{flag} is {value}; it is 0 (no bound) or above")
        self._began = steady_seconds()
        self._resident = resident_bytes()

    def take(self, rows: int, size: int) -> None:
        """Count rows that were read. Raises QueryBoundError, which names the flag."""
        with self._lock:
            self.rows += rows
            self.size += size
            if self.max_rows and self.rows > self.max_rows:
                raise self._exceeded(f"more than {self.max_rows} rows", "--max-rows")
            if self.max_bytes and self.size > self.max_bytes:
                raise self._exceeded(f"more than {size_in_words(self.max_bytes)}", "--max-bytes")
        self.check_time()

    def check_time(self) -> None:
        """Raise QueryBoundError if the query has taken too long."""
        if self.timeout and steady_seconds() - self._began > self.timeout:
            if not self.rows:
                raise QueryBoundError(
                    f"the query has no row after {self.timeout:g} s; is the broker running, does it answer? Or raise "
                    "--timeout (0: no bound)"
                )
            raise self._exceeded(f"for more than {self.timeout:g} s", "--timeout")

    def check_memory(self) -> None:
        """Raise QueryBoundError if the process holds too much; the engine itself knows no bound."""
        held = resident_bytes() - self._resident
        if self.max_memory and held > self.max_memory:
            raise QueryBoundError(
                f"the query holds {size_in_words(held)} of memory; join and group fewer rows, name only the columns it "
                "needs instead of *, or raise --max-memory (0: no bound)"
            )

    def progress(self) -> str:
        """Return how far the query is."""
        return f"{count_in_words(self.rows)} rows, {size_in_words(self.size)}"

    def _exceeded(self, what: str, flag: str) -> QueryBoundError:
        return QueryBoundError(
            f"the query reads {what} of its topics; read less with --from and --until, name only the columns it needs "
            f"instead of *, or raise {flag} (0: no bound)"
        )


def resident_bytes() -> int:
    """Return the memory that this process holds; 0 where the system does not say, and then nothing bounds it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
