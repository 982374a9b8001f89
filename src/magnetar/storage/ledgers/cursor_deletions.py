"""Which deletions of cursors are on their way to the disk, and what waits for them.

A deleted cursor is gone at once for those who look; its deletion is durable with the next group of the journal. What
comes under the same name waits until then, so that it never precedes the answer to whoever asked for the deletion.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.model.errors import PersistenceError
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.write_group import Done

Over = Callable[[PersistenceError | None], None]


class CursorDeletions:
    """The deletions of all logs of one store, by log and name; a topic may be unloaded meanwhile."""

    __slots__ = ("_journal", "_under_way")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._under_way: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, log_id: int, name: str, record: bytes, done: Done | None) -> None:
        """Write the record of a deletion, as often as it takes; ``done`` when it is durable."""
        key = log_id, name

        def durable() -> None:
            left = self._under_way.pop(key, 1) - 1
            if left:
                self._under_way[key] = left
            if done is not None:
                done()

        self._journal.add_record(record, durable)
        self._under_way[key] = self._under_way.get(key, 0) + 1

    def when_over(self, log_id: int, name: str, answer: Over) -> None:
        """Answer when no deletion of that name is under way, at once if none is.

        Answers with the error if the disk refuses writes meanwhile: the deletion is tried again, nobody waits for it.
        """
        if (log_id, name) not in self._under_way:
            answer(None)
            return

        def again() -> None:
            self.when_over(log_id, name, answer)

        def failed(error: PersistenceError) -> None:
            if self._journal.failing is None:
                again()  # only entries were refused, on a full disk
            else:
                answer(error)

        self._journal.barrier(again, failed)
