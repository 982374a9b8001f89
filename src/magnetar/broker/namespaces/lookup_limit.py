"""How many questions about topics are under way: one that makes a partitioned topic waits for the disk."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from magnetar.config.settings import Settings
from magnetar.model.errors import TooManyLookupsError

T = TypeVar("T")


class LookupLimit:
    """Refuses questions above ``maxConcurrentLookupRequest``, which may change, on the wire and over REST together."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._under_way = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a question until its answer. Raises TooManyLookupsError."""
        if self._under_way >= self._settings.maxConcurrentLookupRequest:
            raise TooManyLookupsError("Failed due to too many pending lookup requests")
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    async def answered(self, answer: Coroutine[Any, Any, T]) -> T:
        """Count a question that may wait for the disk. Raises TooManyLookupsError."""
        try:
            with self.one():
                return await answer
        finally:
            answer.close()  # of one that is refused nothing has run
