"""The embedded ledger store: all topics' logs in one journal.

It owns the cache's budget and the numbers that must never be given twice; the journal's backend and the threads it
works on are handed in (:class:`magnetar.storage.local_store.LocalLedgerStore` has those of a directory).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import partial
from typing import Final

from magnetar.model.errors import MagnetarError, PersistenceError, QuotaExceededError
from magnetar.runtime.clock import Clock
from magnetar.runtime.tasks import TaskGroup
from magnetar.storage.backends.journal_backend import JournalBackend, is_bad_medium, segment_name
from magnetar.storage.ledgers.archive import Archive, NoArchive, Offload
from magnetar.storage.ledgers.cursor_deletions import CursorDeletions
from magnetar.storage.ledgers.entry_cache import EntryCache
from magnetar.storage.ledgers.entry_reader import EntryReader
from magnetar.storage.ledgers.ledger import Rollover
from magnetar.storage.ledgers.managed_ledger import ManagedLedger, ReadDone
from magnetar.storage.log import records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.segment import Span
from magnetar.storage.log.write_group import Failed
from magnetar.storage.lost_blocks import LOST_IDS, LOST_SEQUENCES, newest_lost
from magnetar.storage.recovery import recover
from magnetar.storage.replay.recovered import Recovered
from magnetar.storage.space.full_disk import FullDisk
from magnetar.storage.space.segment_cleaner import SegmentCleaner
from magnetar.storage.space.segment_keeper import SegmentKeeper
from magnetar.storage.store_settings import StoreSettings
from magnetar.storage.store_threads import StoreThreads

log = logging.getLogger(__name__)

_BAD_MEDIUM: Final = (
    ". If the disk never gives these bytes again: magnetar verify DIR names all that it does not give; copy the file "
    "with a program that leaves zeros in their place (ddrescue) and put the copy there: the start names what is "
    "missing and uses everything else"
)


class LedgerStore:
    """All logs of one journal. Use: ``open()``, then logs, then ``close()``.

    It has no threads of its own: ``threads`` and what ``backend`` writes with belong to the object that made them.
    """

    def __init__(
        self, backend: JournalBackend, clock: Clock, threads: StoreThreads, settings: StoreSettings | None = None,
        archive: Archive | None = None,
    ) -> None:  # fmt: skip
        self._backend = backend
        self.clock = clock
        self.settings = settings = settings or StoreSettings()
        self._threads = threads
        self.cache = EntryCache(settings.cache_bytes)
        self.rollover = Rollover(
            settings.ledger_entries_max, settings.ledger_bytes_max,
            settings.ledger_min_rollover_ms, settings.ledger_max_rollover_ms,
        )  # fmt: skip
        self.journal = Journal(
            backend.writer, clock, sync_data=settings.sync_data, segment_bytes=settings.segment_bytes,
            aligned_bytes_min=settings.aligned_bytes_min, ack_delay=settings.ack_delay_seconds,
        )  # fmt: skip
        self.cursor_deletions = CursorDeletions(self.journal)
        self._reader = EntryReader(
            backend, self.cache, threads.reader, archive or NoArchive(), threads.archive, threads.ahead
        )
        self._tasks = TaskGroup("storage")
        self._logs: dict[str, ManagedLedger] = {}
        self._unborn: dict[int, tuple[Callable[[], None], list[bytes]]] = {}
        """Logs whose existence is not durable yet: what is called then, and the records that say that they exist."""
        self.ids = [0, 0, 0]
        """Highest log, ledger and cursor id ever given."""
        self.secret = secrets.randbits(32)
        """The secret of a new directory; an old one has its own."""
        self._owner: int | None = None
        """What the metadata say that the secret is."""
        self.discarded: dict[str, Offload] = {}
        """Copies of ledgers that no ledger needs any more, by key: their objects are to be deleted."""
        reserve = backend.reserve(settings.reserve_bytes)
        self.keeper = SegmentKeeper(
            self, backend, threads.keeper, self._reader, reserve, self._tasks, sync_data=settings.sync_data
        )
        self.journal.on_sealed = self.keeper.sealed
        self.occupancy = self.keeper.occupancy
        self.cleaner = SegmentCleaner(
            self, self.keeper, self._reader, settings.segment_bytes, settings.reclaim_bytes_per_second
        )
        self.full_disk = FullDisk(reserve, self.journal, self.cleaner.make_room, self._tasks)
        self._opened = False
        self.damage: list[str] = []
        """Descriptions of what start-up found unreadable."""
        self.keep_all: str | None = None
        """Why nothing may be let go, whatever the policies say: they are in doubt."""

    # life --------------------------------------------------------------------------------------------------------

    def belong_to(self, secret: int) -> None:
        """The number that all files of a new directory carry; an old one has its own already."""
        self.secret = self._owner = secret

    def open(self) -> None:
        """Take the journal, recover, be ready. Raises PersistenceError with the next step in its text.

        A store that could not be opened has given the directory back and holds nothing; another one may try again.
        """
        backend = self._backend
        backend.acquire()
        self._opened = True
        try:
            self._begin(recover(backend, self, self._owner, self.full_disk.before_start))
        except BaseException as error:
            self._opened = False
            self.journal.close()  # a group that is scheduled by now is not written any more
            backend.release()
            if isinstance(error, OSError | records.RecordError):
                raise PersistenceError(
                    f"the data directory cannot be read or repaired: {error}; nothing was lost, start again when that "
                    f"is mended{_BAD_MEDIUM if is_bad_medium(error) else ''}"
                ) from error
            raise

    def _begin(self, found: Recovered) -> None:
        """Go on from what recovery found. Raises OSError."""
        self._backend.remove_unfinished()
        self._logs = {managed.name: managed for managed in found.logs.values()}
        self.ids = found.ids
        if found.secret is not None:
            self.secret = found.secret
        self.damage = found.damage
        self._name_lost_segments(found)
        self.keeper.start(found)
        self.journal.start(found.segment, found.length, found.sequence, self.secret)
        for managed in self._logs.values():
            managed.finish_trim()
        for cursor in found.renumbered:
            cursor.record(_nothing)
        self.full_disk.start()  # the last: from here on there may be a task

    def _name_lost_segments(self, found: Recovered) -> None:
        """Say which segments are gone, and give no number again that they or unreadable blocks may have given."""
        present = set(self._backend.segments())
        for number in sorted(set(self.occupancy.numbers()) - present):
            spans = self.occupancy.spans(number)
            entries = sum(span.end - span.first for span in spans)
            logs = len({span.log for span in spans})
            found.name(f"{segment_name(number)} is missing: {entries} entries of {logs} topics cannot be read")
        lost = newest_lost(found.noted, found.segment, hollow=found.hollow)
        # whole blocks after those that are lost say how far they counted
        unknown = found.hollow
        if found.noted is not None and lost is not None:
            found.name(lost)
            found.segment, found.length, found.blocks_lost = found.noted, 0, True
            unknown = True
        if found.blocks_lost:
            found.ids[:] = [number + LOST_IDS for number in found.ids]
            found.sequence += LOST_SEQUENCES if unknown else 0

    async def close(self) -> None:
        """Write what waits, leave a checkpoint, give the directory back. After this, starting reads no segment.

        One that is not open has nothing to write, but may have been given a directory that is locked already.
        """
        if not self._opened:
            self._backend.release()
            return
        self._opened = False
        self._reader.close()
        await self.journal.drain()
        self.journal.close()
        try:
            if self.journal.writes and self.journal.failing is None:
                await self.keeper.seal(self.journal.segment, self.journal.length, self.journal.sequence)
        except OSError as error:
            log.error("no checkpoint could be left (%s); the next start reads the log instead", error)
        finally:
            await self._tasks.close()
            # the threads may be shared: what they still do for this store comes first
            loop, threads = asyncio.get_running_loop(), self._threads
            await loop.run_in_executor(threads.writer, _nothing)
            await loop.run_in_executor(threads.keeper, _nothing)
            await loop.run_in_executor(threads.reader, self._reader.large.close)
            await loop.run_in_executor(threads.reader, self._backend.release)

    @property
    def zeros_written(self) -> int:
        """Bytes of zeros that were written ahead of small groups, which go over them."""
        return self._backend.writer.zeros_written

    @property
    def reader(self) -> EntryReader:
        """What reads segments; its counters are for statistics."""
        return self._reader

    # logs --------------------------------------------------------------------------------------------------------

    def open_log(
        self, name: str, done: Callable[[], None] | None = None, failed: Failed | None = None
    ) -> ManagedLedger:
        """The log of that name, made if missing; ``done`` when its existence is durable.

        A ledger is opened each time: entries written by this process never share a ledger with older ones (rule 4.1.5).
        A log that was durable before is served also if the disk takes nothing (decision 069).
        """
        managed = self.unopened_log(name)
        managed.open_ledger()
        if done is not None:
            self.journal.barrier(done, failed if managed.id in self._unborn else lambda error: done())
        return managed

    def unopened_log(self, name: str) -> ManagedLedger:
        """The log of that name, made if missing: nothing may be appended to it before :meth:`open_log`.

        It is durable when the journal has written all that it was given so far.
        """
        managed = self._logs.get(name)
        if managed is None:
            self.ids[0] += 1
            managed = self._logs[name] = ManagedLedger(self, self.ids[0], name)
            born = partial(self._born, managed.id)
            self._unborn[managed.id] = born, []
            managed.write_birth(born)
        return managed

    def _born(self, log_id: int) -> None:
        del self._unborn[log_id]

    def birth_given(self, log_id: int, record: bytes) -> None:
        """The journal is given a record which says that a log exists."""
        if (unborn := self._unborn.get(log_id)) is not None:
            unborn[1].append(record)

    def forget_unborn(self, managed: ManagedLedger) -> bool:
        """Have it that a log, whose birth the disk has just refused, never was; False if it exists or is used."""
        if managed.id not in self._unborn or managed.cursors or managed.feature_states or managed.pending:
            return False
        born, written = self._unborn.pop(managed.id)
        del self._logs[managed.name]
        managed.forget()
        self.journal.withdraw(written, born)
        return True

    def when_records_are_taken(self, answer: Callable[[PersistenceError | None], None]) -> None:
        """Answer whether the disk takes writes. After a failed write only another write shows that (decision 069)."""
        journal = self.journal
        if journal.failing is None:
            answer(None)
        else:
            journal.roll(lambda: answer(None), answer)

    def when_entries_are_taken(self, answer: Callable[[MagnetarError | None], None]) -> None:
        """Answer as above; QuotaExceededError while the disk is full and what is left is for what makes space."""
        if self.journal.full is not None:
            answer(QuotaExceededError(str(self.journal.full)))
        else:
            self.when_records_are_taken(answer)

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
        """All logs."""
        return self._logs.values()

    def durable_logs(self) -> list[ManagedLedger]:
        """Those whose existence is durable: another one's is in a segment that no checkpoint of now covers."""
        return [managed for managed in self._logs.values() if managed.id not in self._unborn]

    def make_log(self, log_id: int, name: str) -> ManagedLedger:
        """Make a log while recovery replays; nothing is written."""
        return ManagedLedger(self, log_id, name)

    def next_ledger_id(self) -> int:
        """A ledger id that was never given before."""
        self.ids[1] += 1
        return self.ids[1]

    def next_cursor_id(self) -> int:
        """A cursor id that was never given before."""
        self.ids[2] += 1
        return self.ids[2]

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
        """The span is needed no more; a sealed segment without spans is removed."""
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
        """The threads for work on copies of ledgers, which may take long."""
        return self._threads.archive


def _nothing() -> None: ...
