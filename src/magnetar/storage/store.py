"""The embedded ledger store: one directory, all topics' logs, one journal.

Owns the three threads that touch the disk (writer: group commit; reader: entries; keeper: indexes, checkpoints,
removal of dead segments), the cache's budget, and the numbers that must never be given twice.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import Clock
from magnetar.runtime.tasks import TaskGroup, in_turns
from magnetar.storage.backends.committer import Committer, ThreadCommitter
from magnetar.storage.backends.files import FileSystem, write_atomically
from magnetar.storage.backends.newest_segment import loss, lost_newest
from magnetar.storage.backends.segment_names import (
    disk_sizes,
    index_name,
    remove_segment,
    segment_name,
    segment_numbers,
)
from magnetar.storage.ledgers.archive import Archive, NoArchive, Offload
from magnetar.storage.ledgers.entry_cache import EntryCache
from magnetar.storage.ledgers.entry_reader import EntryReader
from magnetar.storage.ledgers.ledger import Rollover
from magnetar.storage.ledgers.managed_ledger import ManagedLedger, ReadDone
from magnetar.storage.log import checkpoint, records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.segment import SegmentFiles, Span, index_bytes
from magnetar.storage.log.write_group import Failed
from magnetar.storage.recovery.recovery import Recovered, recover
from magnetar.storage.space.full_disk import FullDisk
from magnetar.storage.space.occupancy import Occupancy
from magnetar.storage.space.reserve import RESERVE_BYTES, Reserve
from magnetar.storage.space.segment_cleaner import SegmentCleaner

log = logging.getLogger(__name__)

_UNKNOWN: Final = 1 << 62
"""Length of a segment that recovery has cut already."""

_LOST_SEQUENCES: Final = 1 << 32
_LOST_IDS: Final = 1 << 24
"""More than a segment can have given."""

_ARCHIVE_THREADS: Final = 4
"""managedLedgerOffloadReadThreads is 2 in Apache Pulsar."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What the store is told; named after Pulsar's settings where there is one."""

    sync_data: bool = True
    """journalSyncData: receipts wait for the disk. False is the named weaker mode."""
    cache_bytes: int = 64 << 20
    """managedLedgerCacheSizeMB, in bytes."""
    segment_bytes: int = 128 << 20
    aligned_bytes_min: int = 32 << 10
    """A group from this size on lies on whole pages and may be written past the page cache."""
    ack_delay_seconds: float = 0.02
    reclaim_bytes_per_second: int = 16 << 20
    """spaceReclaimBytesPerSecond."""
    reserve_bytes: int = RESERVE_BYTES
    """Kept back for times when the disk is full."""
    ledger_entries_max: int = 50_000
    ledger_bytes_max: int = 2048 << 20
    ledger_min_rollover_ms: int = 10 * 60_000
    ledger_max_rollover_ms: int = 240 * 60_000


class LedgerStore:
    """All logs of one directory. Use: ``open()``, then logs, then ``close()``."""

    def __init__(
        self, files: FileSystem, clock: Clock, settings: StoreSettings | None = None,
        executors: Callable[[str], Executor] | None = None, committer: Callable[[Committer], Committer] | None = None,
        archive: Archive | None = None,
    ) -> None:  # fmt: skip
        self._files = files
        self.clock = clock
        self.settings = settings = settings or StoreSettings()
        make = executors or _thread
        self._threads = {name: make(name) for name in ("writer", "reader", "keeper", "archive")}
        self.cache = EntryCache(settings.cache_bytes)
        self.rollover = Rollover(
            settings.ledger_entries_max, settings.ledger_bytes_max,
            settings.ledger_min_rollover_ms, settings.ledger_max_rollover_ms,
        )  # fmt: skip
        thread = ThreadCommitter(self._threads["writer"])
        self.journal = Journal(
            files, clock, self._threads["writer"], committer=committer(thread) if committer else thread,
            sync_data=settings.sync_data, segment_bytes=settings.segment_bytes,
            aligned_bytes_min=settings.aligned_bytes_min,
            ack_delay=settings.ack_delay_seconds, on_sealed=self._sealed,
        )  # fmt: skip
        self._segments = SegmentFiles(files)
        self._reader = EntryReader(
            files, self._segments, self.cache, self._threads["reader"], archive or NoArchive(), self._threads["archive"]
        )
        self._tasks = TaskGroup("storage")
        self._keeping = asyncio.Lock()
        self._logs: dict[str, ManagedLedger] = {}
        self.occupancy = Occupancy()
        self.rescue = SegmentCleaner(self, self._reader, settings.segment_bytes, settings.reclaim_bytes_per_second)
        self.room = FullDisk(Reserve(files, settings.reserve_bytes), self.journal, self.rescue.make_room, self._tasks)
        self.sealing = (0.0, 0.0)
        """When a segment was sealed last, in the loop's time, and how long that took."""
        self._ids = [0, 0, 0]
        self._secret = secrets.randbits(32)
        """Of a new directory; an old one has its own."""
        self._owner: int | None = None
        """What the metadata say that the secret is."""
        self._unindexed: dict[int, int] = {}
        """Sealed segments without an index file, and their lengths: the places of their extents stay in memory."""
        self.discarded: dict[str, Offload] = {}
        """Copies of ledgers that no ledger needs any more, by key: their objects are to be deleted."""
        self._checkpoint_number = 0
        self._checkpoints: list[int] = [0, 0]
        """Segments up to which the two checkpoints on disk reach."""
        self.damage: list[str] = []
        """What start-up found unreadable, in words."""
        self.keep_all: str | None = None
        """Why nothing may be let go, whatever the policies say: they are in doubt."""

    # life --------------------------------------------------------------------------------------------------------

    def belong_to(self, secret: int) -> None:
        """The number that all files of a new directory carry; an old one has its own already."""
        self._secret = self._owner = secret

    def open(self) -> None:
        """Take the directory, recover, be ready. Raises PersistenceError with the next step in its text."""
        take(self._files)
        self.room.before_start()
        try:
            found = recover(self._files, self, self._owner)
        except OSError as error:
            self._files.unlock()
            raise PersistenceError(
                f"the data directory cannot be read or repaired: {error}; nothing was lost, start again when that is "
                "mended"
            ) from error
        except BaseException:
            self._files.unlock()
            raise
        for name in self._files.names():
            if name.endswith(".new") and not name.startswith("metadata-"):
                self._files.remove(name)
        self._logs = {managed.name: managed for managed in found.logs.values()}
        self._ids = found.ids
        if found.secret is not None:
            self._secret = found.secret
        self.damage = found.damage
        self._name_lost_segments(found)
        self._checkpoint_number = found.checkpoint_number
        # 0: the checkpoint before the newest is still there, and nothing that it needs may be removed
        self._checkpoints = [0, found.checkpoint_segment]
        if found.scanned:
            self._unindexed.update(dict.fromkeys(found.scanned, _UNKNOWN))
            try:
                self._finish_recovery(found)
            except OSError as error:
                log.warning("the checkpoint of the start could not be written (%s); the next segment's will do", error)
        self.journal.start(found.segment, found.length, found.sequence, self._secret)
        self.room.start()
        for managed in self._logs.values():
            managed.finish_trim()

    def _name_lost_segments(self, found: Recovered) -> None:
        """Say which segments are gone, and give no number again that one of them may have given."""
        present = set(segment_numbers(self._files.names()))
        for number in sorted(set(self.occupancy.numbers()) - present):
            spans = self.occupancy.spans(number)
            entries = sum(span.end - span.first for span in spans)
            logs = len({span.log for span in spans})
            self._name(f"{segment_name(number)} is missing: {entries} entries of {logs} topics cannot be read")
        lost = lost_newest(self._files, found.checkpoint_segment)
        if lost is not None:
            self._name(loss(lost))
            found.segment, found.length = lost, 0
            found.sequence += _LOST_SEQUENCES
            found.ids[:] = [number + _LOST_IDS for number in found.ids]

    def _name(self, damage: str) -> None:
        self.damage.append(damage)
        log.error("%s", damage)

    def _finish_recovery(self, found: Recovered) -> None:
        for number in found.scanned:
            spans = self.occupancy.spans(number)
            self._finish_segment(number, _UNKNOWN, spans)
            self._indexed(number, spans)
        blobs = [_blob(managed, found.sequence - 1) for managed in self._logs.values()]
        self._save_checkpoint(checkpoint.encode(self._head(found.segment, found.length, found.sequence), blobs))
        self._checkpoints = [found.checkpoint_segment, found.segment]

    async def close(self) -> None:
        """Write what waits, leave a checkpoint, give the directory back. After this, starting reads no segment."""
        self._reader.close()
        await self.journal.drain()
        self.journal.close()
        try:
            if self.journal.writes and self.journal.failing is None:
                await self._seal(self.journal.segment, self.journal.length, self.journal.sequence)
        except OSError as error:
            log.error("no checkpoint could be left (%s); the next start reads the log instead", error)
        finally:
            await self._tasks.close()
            for thread in self._threads.values():
                thread.shutdown(wait=True)
            self._segments.close()
            self._files.unlock()

    # logs --------------------------------------------------------------------------------------------------------

    def open_log(
        self, name: str, done: Callable[[], None] | None = None, failed: Failed | None = None
    ) -> ManagedLedger:
        """The log of that name, made if missing; ``done`` when its existence is durable.

        A ledger is opened each time: entries written by this process never share a ledger with older ones (4.1.5).
        """
        managed = self._logs.get(name)
        if managed is None:
            self._ids[0] += 1
            managed = self._logs[name] = ManagedLedger(self, self._ids[0], name)
            managed.write_birth()
        managed.open_ledger()
        if done is not None:
            self.journal.barrier(done, failed)
        return managed

    def find_log(self, name: str) -> ManagedLedger | None:
        """The log of that name as it is: nothing may be appended to it before :meth:`open_log`."""
        return self._logs.get(name)

    def delete_log(self, name: str, done: Callable[[], None] | None = None) -> None:
        """Delete a log with its ledgers and cursors; its bytes go when that is durable."""
        managed = self._logs.pop(name)
        managed.forget()
        self.cache.clear(managed.cached_runs)

        def gone() -> None:
            for span in managed.spans:
                self.span_dropped(span)
            managed.dissolve()
            if done is not None:
                done()

        self.journal.add_record(records.json_record(records.RecordKind.LOG_DELETED, log=managed.id), gone)

    def names(self) -> list[str]:
        """Names of all logs, in the order they were made."""
        return list(self._logs)

    def __contains__(self, name: str) -> bool:
        return name in self._logs

    # what logs ask for -------------------------------------------------------------------------------------------

    def logs(self) -> Iterable[ManagedLedger]:
        """All of them."""
        return self._logs.values()

    def covered(self) -> tuple[int, int]:
        """Segments up to which the two kept checkpoints reach."""
        return self._checkpoints[0], self._checkpoints[-1]

    def make_log(self, log_id: int, name: str) -> ManagedLedger:
        """For recovery."""
        return ManagedLedger(self, log_id, name)

    def next_ledger_id(self) -> int:
        """A ledger id that was never given before."""
        self._ids[1] += 1
        return self._ids[1]

    def next_cursor_id(self) -> int:
        """A cursor id that was never given before."""
        self._ids[2] += 1
        return self._ids[2]

    def read(self, log: ManagedLedger, start: int, entries_max: int, bytes_max: int, done: ReadDone) -> None:
        """See :meth:`ManagedLedger.read`."""
        self._reader.read(log, start, entries_max, bytes_max, done)

    def read_on(self, log: ManagedLedger) -> None:
        """See :meth:`EntryReader.read_on`."""
        self._reader.read_on(log)

    def span_added(self, span: Span) -> None:
        """A span counts as living in its segment from now on."""
        self.occupancy.added(span)

    def span_dropped(self, span: Span) -> None:
        """Nobody needs the span any more; a sealed segment without spans is removed."""
        self.occupancy.dropped(span)

    def span_shrunk(self, span: Span, size: int) -> None:
        """See :class:`SpanHome`."""
        self.occupancy.shrunk(span, size)

    def span_left(self, source: int, target: int, size: int) -> None:
        """See :class:`SpanHome`."""
        self.occupancy.moved(source, target, size)

    def copy_discarded(self, offload: Offload) -> None:
        """No ledger needs that object any more, once what was written so far is durable."""
        self.discarded[offload.key] = offload

    def copy_needed(self, offload: Offload) -> None:
        """A ledger has it."""
        self.discarded.pop(offload.key, None)

    def copy_begun(self, offload: Offload, done: Callable[[], None], failed: Failed) -> None:
        """An object of that name is about to be written; if nothing comes of it, it is one to be deleted."""
        self.copy_discarded(offload)
        self.journal.add_record(
            records.json_record(records.RecordKind.COPY_BEGUN, offload=offload.to_list()), done, failed
        )

    def copy_deleted(self, offload: Offload) -> None:
        """The object is gone."""
        if self.discarded.pop(offload.key, None) is not None:
            self.journal.add_record(records.json_record(records.RecordKind.COPY_DELETED, key=offload.key))

    @property
    def archive_threads(self) -> Executor:
        """For work on copies of ledgers, which may take long."""
        return self._threads["archive"]

    # keeping -----------------------------------------------------------------------------------------------------

    def _sealed(self, number: int, length: int, sequence: int) -> None:
        self._tasks.start(self._seal(number, length, sequence), f"seal-{number}")

    async def _seal(self, number: int, length: int, sequence: int) -> None:
        """Index and checkpoint for a segment that takes no more; then remove what is dead.

        ``sequence`` is that of the first block behind it: a replay from here takes no block below that.
        """
        async with self._keeping:
            self._unindexed[number] = length
            begun = asyncio.get_running_loop().time()
            try:
                await self._write_checkpoint(number, length, sequence)
                now = asyncio.get_running_loop().time()
                self.sealing = (now, now - begun)
                await self.remove_dead()
            except OSError as error:
                log.error("segment %d has no index and checkpoint yet (%s); the next segment's will do", number, error)

    async def _write_checkpoint(self, number: int, length: int, sequence: int) -> None:
        for unindexed, size in sorted(self._unindexed.items()):
            spans = self.occupancy.spans(unindexed)
            await self._keep(self._finish_segment, unindexed, size, spans)
            self._indexed(unindexed, spans)
        if number <= self._checkpoints[-1]:
            return  # closing was quicker
        blobs = []
        async for managed in in_turns(list(self._logs.values())):
            if not managed.deleted:
                blobs.append(_blob(managed, self.journal.sequence - 1))
        head = self._head(number, length, sequence)
        await self._keep(self._save_checkpoint, checkpoint.encode(head, blobs))
        self._checkpoints = [*self._checkpoints[-1:], number]

    def _indexed(self, number: int, spans: list[Span]) -> None:
        self._unindexed.pop(number, None)
        for span in spans:
            span.places = None

    async def _keep(self, work: Callable[..., None], *arguments: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads["keeper"], work, *arguments)

    def _finish_segment(self, number: int, length: int, spans: list[Span]) -> None:
        """Cut off what a failed write left, then write the index."""
        try:
            file = self._files.open(segment_name(number))
        except FileNotFoundError:
            pass  # all that was in it is dead and gone already
        else:
            if file.size() > length:
                file.truncate(length)
            if not self.settings.sync_data:
                # a checkpoint is about to rely on it, and what was moved here will be nowhere else
                file.sync()
            file.close()
        write_atomically(self._files, index_name(number), index_bytes(number, spans))

    def _save_checkpoint(self, data: bytes) -> None:
        self._checkpoint_number += 1
        self.room.reserve.checkpoint_bytes = len(data)
        checkpoint.save(self._files, self._checkpoint_number, data)

    def _head(self, segment: int, length: int, sequence: int) -> dict[str, Any]:
        head = {
            "format": checkpoint.FORMAT, "segment": segment, "length": length, "sequence": sequence, "ids": self._ids,
            "secret": self._secret,
        }  # fmt: skip
        if self.discarded:
            head["discarded"] = [copy.to_list() for copy in self.discarded.values()]
        return head

    async def remove_dead(self) -> list[int]:
        """Remove segments that hold nothing alive and that no kept checkpoint needs for a replay."""
        border = self._checkpoints[0]
        present = await asyncio.get_running_loop().run_in_executor(self._threads["keeper"], self._segment_numbers)
        dead = [number for number in present if self.occupancy.removable(number, border)]
        for number in dead:
            await asyncio.get_running_loop().run_in_executor(self._threads["reader"], self._segments.forget, number)
            await self._keep(remove_segment, self._files, number)
            self.occupancy.removed(number)
        if dead:
            log.info("removed %d segments that held nothing alive", len(dead))
        return dead

    async def measure(self) -> list[int]:
        """Know the sizes of all segments that a checkpoint covers; the numbers of all that exist."""
        present = await asyncio.get_running_loop().run_in_executor(self._threads["keeper"], self._segment_numbers)
        sizes = self.occupancy.sizes
        unknown = [n for n in present if n <= self._checkpoints[-1] and n not in sizes and n not in self._unindexed]
        if unknown:
            work = partial(disk_sizes, self._files, unknown)
            sizes.update(await asyncio.get_running_loop().run_in_executor(self._threads["keeper"], work))
        return present

    def _segment_numbers(self) -> list[int]:
        return segment_numbers(self._files.names())


def take(files: FileSystem) -> None:
    """Make the directory last and lock it, unless that was done. Raises PersistenceError."""
    if files.locked:
        return
    try:
        files.make()
        files.lock()
    except BlockingIOError:
        raise PersistenceError(
            "the data directory is in use by another process; stop that one or choose another directory"
        ) from None
    except OSError as error:
        raise PersistenceError(f"the data directory cannot be used: {error}") from error


def _thread(name: str) -> Executor:
    # objects may lie behind a network: one that is slow must not keep the others waiting
    return ThreadPoolExecutor(_ARCHIVE_THREADS if name == "archive" else 1, thread_name_prefix=f"magnetar-{name}")


def _blob(managed: ManagedLedger, sequence: int) -> bytes:
    """A log's part of a checkpoint, as of the last durable block, which is ``sequence``."""
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
    feature_states = [
        feature_state.image() for feature_state in managed.feature_states.values() if feature_state.exists
    ]
    return checkpoint.log_blob(about, [cursor.snapshot() for cursor in managed.cursors.values()], feature_states)
