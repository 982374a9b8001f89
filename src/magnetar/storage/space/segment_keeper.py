"""What happens to a segment after its last block: an index, a checkpoint that covers it, and in the end its removal.

A segment goes only when nothing in it is needed and both kept checkpoints know that, so a start from either of them
finds everything that it replays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Final, Protocol

from magnetar.runtime.tasks import TaskGroup, in_turns
from magnetar.storage.backends.journal_backend import JournalBackend, SpaceReserve
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.entry_reader import EntryReader
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log import checkpoint, log_image
from magnetar.storage.log.checkpoint_head import FORMAT
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.segment import Span, index_bytes
from magnetar.storage.replay.recovered import Recovered
from magnetar.storage.space.occupancy import Occupancy

log = logging.getLogger(__name__)

_UNKNOWN: Final = 1 << 62
"""Length of a segment that recovery has cut already."""


class SegmentKeeperHome(Protocol):
    """The store, as its segment keeper sees it."""

    journal: Journal
    discarded: dict[str, Offload]
    ids: list[int]
    secret: int

    def durable_logs(self) -> list[ManagedLedger]: ...


class SegmentKeeper:
    """Keeps the segments of one store; lives on its loop and blocks only in ``executor``."""

    def __init__(
        self, home: SegmentKeeperHome, backend: JournalBackend, executor: Executor, reader: EntryReader,
        reserve: SpaceReserve, tasks: TaskGroup, *, sync_data: bool,
    ) -> None:  # fmt: skip
        self._home = home
        self._backend = backend
        self._executor = executor
        self._reader = reader
        self._reserve = reserve
        self._tasks = tasks
        self._sync_data = sync_data
        self.occupancy = Occupancy()
        self.sealing = (0.0, 0.0)
        """When a segment was sealed last, in the loop's time, and how long that took."""
        self.on_checkpoint: Callable[[], object] = int
        """Called when a checkpoint was written and what it makes removable is gone."""
        self._one = asyncio.Lock()
        self._unindexed: dict[int, int] = {}
        """Sealed segments without an index, and their lengths: the places of their extents stay in memory."""
        self._checkpoint_number = 0
        self._checkpoints: list[int] = [0, 0]
        """Segments up to which the two kept checkpoints reach."""
        self.keeps_all = False
        """Whether no segment may be removed now: a backup is being written."""

    def covered(self) -> tuple[int, int]:
        """Segments up to which the two kept checkpoints reach."""
        return self._checkpoints[0], self._checkpoints[-1]

    def no_checkpoint(self) -> asyncio.Lock:
        """Held with ``async with``: no checkpoint and no index is written or removed meanwhile."""
        return self._one

    def sizes(self, numbers: Iterable[int]) -> dict[int, int]:
        """Bytes on disk of segments with their indexes; blocks."""
        return self._backend.sizes(numbers)

    def start(self, found: Recovered) -> None:
        """Take over what recovery found: indexes for what it read, and a checkpoint, so that it is not read again.

        Raises OSError if there can be none although the newest segment is gone: what is written after it would begin
        after a gap, which refuses the next start.
        """
        self._checkpoint_number = found.checkpoint_number
        # 0: the checkpoint before the newest is still there, and nothing that it needs may be removed
        self._checkpoints = [0, found.checkpoint_segment]
        if not found.scanned and found.segment == found.checkpoint_segment:
            return
        self._unindexed.update(dict.fromkeys(found.scanned, _UNKNOWN))
        try:
            self._finish_recovery(found)
        except OSError as error:
            if found.segment not in found.scanned:
                raise
            log.warning("the checkpoint of the start could not be written (%s); the next segment's will do", error)

    def _finish_recovery(self, found: Recovered) -> None:
        for number in found.scanned:
            spans = self.occupancy.spans(number)
            self._finish_segment(number, _UNKNOWN, spans)
            self._indexed(number, spans)
        blobs = [_log_part(managed, found.sequence - 1) for managed in self._home.durable_logs()]
        self._save_checkpoint(self._head(found.segment, found.length, found.sequence), blobs)
        self._checkpoints = [found.checkpoint_segment, found.segment]

    # sealing -------------------------------------------------------------------------------------------------------

    def sealed(self, number: int, length: int, sequence: int) -> None:
        """The journal began the next segment."""
        self._tasks.start(self.seal(number, length, sequence), f"seal-{number}")

    async def seal(self, number: int, length: int, sequence: int) -> None:
        """Index and checkpoint for a segment that takes no more; then remove what is dead.

        ``sequence`` is that of the first block after it: a replay from here takes no block below that.
        """
        async with self._one:
            self._unindexed[number] = length
            begun = asyncio.get_running_loop().time()
            try:
                await self._write_checkpoint(number, length, sequence)
                now = asyncio.get_running_loop().time()
                self.sealing = (now, now - begun)
                await self.remove_dead()
                self.on_checkpoint()
            except OSError as error:
                log.error("segment %d has no index and checkpoint yet (%s); the next segment's will do", number, error)

    async def _write_checkpoint(self, number: int, length: int, sequence: int) -> None:
        for unindexed, size in sorted(self._unindexed.items()):
            spans = self.occupancy.spans(unindexed)
            await self.blocking(self._finish_segment, unindexed, size, spans)
            self._indexed(unindexed, spans)
        if number <= self._checkpoints[-1]:
            return  # closing was quicker
        blobs = []
        async for managed in in_turns(self._home.durable_logs()):
            if not managed.deleted:
                blobs.append(_log_part(managed, self._home.journal.sequence - 1))
        head = self._head(number, length, sequence)
        await self.blocking(self._save_checkpoint, head, blobs)
        self._checkpoints = [*self._checkpoints[-1:], number]

    def _indexed(self, number: int, spans: list[Span]) -> None:
        self._unindexed.pop(number, None)
        for span in spans:
            span.places = None

    async def blocking(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do something in the keeper's thread, after all that it was given before."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)

    def _finish_segment(self, number: int, length: int, spans: list[Span]) -> None:
        # without sync_data: a checkpoint is about to rely on it, and what was moved here will be nowhere else
        self._backend.seal(number, length, index_bytes(number, spans), sync=not self._sync_data)

    def _save_checkpoint(self, head: dict[str, Any], blobs: list[bytes]) -> None:
        data = checkpoint.encode(head, blobs)
        self._checkpoint_number += 1
        self._reserve.checkpoint_bytes = len(data)
        checkpoint.save(self._backend, self._checkpoint_number, data)

    def _head(self, segment: int, length: int, sequence: int) -> dict[str, Any]:
        home = self._home
        head = {
            "format": FORMAT, "segment": segment, "length": length, "sequence": sequence, "ids": list(home.ids),
            "secret": home.secret,
        }  # fmt: skip
        if home.discarded:
            head["discarded"] = [copy.to_list() for copy in home.discarded.values()]
        return head

    # removing ------------------------------------------------------------------------------------------------------

    async def remove_dead(self) -> list[int]:
        """Remove segments that hold nothing alive and that no kept checkpoint needs for a replay."""
        border = self._checkpoints[0]
        present: list[int] = await self.blocking(self._backend.segments)
        dead = [number for number in present if self.occupancy.removable(number, border)]
        removed: list[int] = []
        for number in dead:
            await self._reader.forget(number)
            if self.keeps_all:
                return removed
            await self.blocking(self._backend.remove, number)
            self.occupancy.removed(number)
            removed.append(number)
        if removed:
            log.info("removed %d segments that held nothing alive", len(removed))
        return removed

    async def measure(self) -> list[int]:
        """Know the sizes of all segments that a checkpoint covers; the numbers of all that exist."""
        present: list[int] = await self.blocking(self._backend.segments)
        sizes = self.occupancy.sizes
        unknown = [n for n in present if n <= self._checkpoints[-1] and n not in sizes and n not in self._unindexed]
        if unknown:
            sizes.update(await self.blocking(self._backend.sizes, unknown))
        return present

    async def dead_without_checkpoint(self, present: Iterable[int]) -> int:
        """Bytes of segments that nothing needs and no checkpoint covers: the disk refused the one that would."""
        covered, journal = self._checkpoints[-1], self._home.journal
        # the journal may not have begun to write since the start: then its segment is one of those that were found
        last = journal.segment if journal.open_bytes else journal.segment + 1
        dead = [number for number in present if covered < number < last and number not in self.occupancy]
        return sum((await self.blocking(self._backend.sizes, dead)).values()) if dead else 0


def _log_part(managed: ManagedLedger, sequence: int) -> bytes:
    """A log's part of a checkpoint, as of the last durable block, which is ``sequence``.

    It names nothing whose beginning no record on the disk says: where a start has to do without this checkpoint, what
    was written in between would belong to nothing.
    """
    about = {
        "id": managed.id,
        "name": managed.name,
        "properties": managed.properties,
        "end": managed.end,
        "index": managed.index,
        "hidden": [managed.hidden, managed.hidden_size],
        "ledgers": [ledger.to_list() for ledger in managed.table.ledgers],
        "spans": [[s.segment, s.ledger, s.first, s.end, s.bytes] for s in managed.spans],
        "annexes": sequence,
    }
    feature_states = [state.image() for state in managed.feature_states.values() if state.exists]
    cursors = [cursor.snapshot() for cursor in managed.cursors.values() if cursor.recorded]
    return log_image.encode(about, cursors, feature_states)
