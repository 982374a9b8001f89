"""The offloader: closed ledgers are copied to an object store and later read from there (decision 015).

The steps of a ledger, each durable before the next:

1. the copy is announced (a crash from here on leaves its name, so that half of it can be deleted),
2. it is written under its final name by the broker itself; or by a job, which then asks to have it adopted,
3. it is read back whole: entries, counts and digest must be those of the ledger *in this broker*,
4. the ledger's record says where the copy is; from now on a crash leaves both,
5. after ``managedLedgerOffloadDeletionLagMs`` it is read whole once more; only if that succeeds the record says that
   the local entries are released, and they go.

An object is deleted when no record names it any more and that is durable. A failure leaves the local entries where
they are. One ledger of the whole broker is worked on at a time; the entries are read through the store's reader
in small pieces, everything else happens in the archive's threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from magnetar.broker.topic.subscription.backlog import run_at
from magnetar.broker.topic.topic import Topic
from magnetar.config.settings import Settings
from magnetar.model.errors import ConflictError, MagnetarError, PersistenceError, PreconditionFailedError
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import TopicPolicies
from magnetar.offload.digest import LedgerDigest
from magnetar.offload.object_store import folder_of, require_name
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.runtime.callbacks import settled
from magnetar.runtime.clock import Clock
from magnetar.runtime.tasks import TaskGroup, in_turns
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_MS: Final = 60_000
"""How long a topic or an object is left alone after a failure."""


class OffloadStatus(NamedTuple):
    """The state of a topic's last run since this broker was started; the names are Apache Pulsar's."""

    status: str = "NOT_RUN"
    last_error: str = ""
    first_unoffloaded: Position = EARLIEST


@dataclass(slots=True)
class _Counters:
    """Counters since the start of the broker."""

    ledgers: int = 0
    released: int = 0
    deleted: int = 0
    failures: int = 0


class Offloader:
    """The offloader of one broker; lives on its event loop."""

    def __init__(
        self, store: LedgerStore, archive: ParquetArchive, settings: Settings, clock: Clock, rng: Random
    ) -> None:
        self._store = store
        self._archive = archive
        self._url = settings.offloadUrl
        self._clock = clock
        self._rng = rng
        self._tasks = TaskGroup("offload")
        self._one = asyncio.Lock()
        self._statuses: dict[str, OffloadStatus] = {}
        self._failed_ms: dict[str, int] = {}
        self._writing: set[str] = set()
        """Keys of copies that are being made."""
        self._not_before: dict[str, int] = {}
        """When a failed topic or object is tried again, by topic or key."""
        self.counters = _Counters()

    async def close(self) -> None:
        """Stop the copy under way, and delete what was written of it."""
        for name in [one for one, status in self._statuses.items() if status.status == "RUNNING"]:
            log.warning("%s: offloading was given up: the broker stops", name, extra={"topic": name})
        await self._tasks.close()

    # on demand ---------------------------------------------------------------------------------------------------

    def status(self, name: TopicName) -> OffloadStatus:
        """The state of the topic's last run."""
        return self._statuses.get(name.fqn, OffloadStatus())

    def failed_ms(self, name: TopicName) -> int:
        """When a run of the topic failed last since this broker was started; 0: never."""
        return self._failed_ms.get(name.fqn, 0)

    def forget(self, name: TopicName) -> None:
        """The topic is deleted: another one of its name begins anew."""
        self._statuses.pop(name.fqn, None)
        self._failed_ms.pop(name.fqn, None)
        self._not_before.pop(name.fqn, None)

    def begin(self, topic: Topic, until: Position) -> None:
        """Copy every ledger that lies wholly before ``until``. Raises ConflictError while there is a run."""
        if self.status(topic.name).status == "RUNNING":
            raise ConflictError("Offload already in progress")
        ledgers = [
            ledger for ledger in candidates(topic.log) if (ledger.id, ledger.entries) <= (until.ledger, until.entry)
        ]
        self._begin(topic, ledgers)

    def _begin(self, topic: Topic, ledgers: list[Ledger]) -> None:
        self._statuses[topic.name.fqn] = OffloadStatus("RUNNING")
        self._tasks.start(self._run(topic, ledgers), topic.name.fqn)

    async def _run(self, topic: Topic, ledgers: list[Ledger]) -> None:
        name = topic.name.fqn
        try:
            for ledger in ledgers:
                async with self._one:
                    await self._copy(topic, ledger)
        except Exception as error:
            known = isinstance(error, MagnetarError | OSError)
            trace = None if known else error
            log.error("%s: offloading failed: %s", name, error, exc_info=trace, extra={"topic": name})
            self.counters.failures += 1
            self._failed_ms[name] = now = self._clock.now_ms()
            self._not_before[name] = now + _RETRY_MS
            self._statuses[name] = OffloadStatus("ERROR", str(error))
        except BaseException:
            self._statuses[name] = OffloadStatus("ERROR", "offloading was stopped")
            raise
        else:
            self._statuses[name] = OffloadStatus("SUCCESS", "", first_unoffloaded(topic.log))
        finally:
            if topic.log.deleted:
                self.forget(topic.name)

    async def adopt(self, topic: Topic, ledger_id: int, name: str) -> Offload:
        """Record a copy that a job wrote to the object store; no error if it was adopted already.

        Raises ConflictError if it is not a copy of that ledger, PersistenceError or OSError if it cannot be read.
        """
        require_name(name)
        url = self.required_place()
        async with self._one:
            ledger = complete(topic.log, ledger_id)
            if ledger.offload is not None and (ledger.offload.url, ledger.offload.name) == (url, name):
                return ledger.offload
            digest = await self._read(topic.log, ledger, LedgerDigest())
            copy = Offload(url, name, digest.hexdigest(), digest.entries, digest.bytes, 0, self._clock.now_ms())
            try:
                size = await self._thread(self._archive.check, copy, ledger_id)
            except PersistenceError as error:
                raise ConflictError(f"not adopted: {error}") from error
            return await self._record(topic, ledger, copy._replace(size=size))

    async def result(self, files: Sequence[tuple[int, Offload]]) -> AsyncIterator[tuple[list[bytes], list[int] | None]]:
        """Read the files that a job left in the object store, piece by piece; they have a number where copies have a
        ledger.

        Raises PersistenceError, OSError if one cannot be read.
        """
        for number, file in files:
            at = 0
            while at < file.entries:
                piece = await self._thread(self._archive.piece, file, number, at)
                yield piece.entries, piece.counts
                at += len(piece.entries)

    async def found(self, copy: Offload) -> str:
        """``OK`` if the object is there with its size, ``NOT-FOUND``, ``BAD-SIZE``, or ``UNREADABLE``."""
        try:
            size = await self._thread(self._archive.size, copy)
        except FileNotFoundError:
            return "NOT-FOUND"
        except OSError:
            return "UNREADABLE"
        return "OK" if size == copy.size else "BAD-SIZE"

    # one ledger --------------------------------------------------------------------------------------------------

    async def _copy(self, topic: Topic, ledger: Ledger) -> None:
        managed, url = topic.log, self.required_place()
        complete(managed, ledger.id)
        if ledger.offload is not None:
            return
        name = _object_name(topic.name, ledger.id, self._rng)
        copy = Offload(url, name, "", ledger.entries, ledger.bytes, 0, self._clock.now_ms())
        self._writing.add(copy.key)
        try:
            await settled(lambda done, failed: self._store.copy_begun(copy, done, failed))
            digest, size = await self._write(topic, ledger, copy)
            copy = copy._replace(digest=digest, size=size)
            await self._thread(self._archive.check, copy, ledger.id)
            await self._record(topic, ledger, copy)
        finally:
            self._writing.discard(copy.key)
        name = topic.name.fqn
        log.info("%s: ledger %d is offloaded to %s", name, ledger.id, copy.key, extra={"topic": name})

    async def _write(self, topic: Topic, ledger: Ledger, copy: Offload) -> tuple[str, int]:
        """Write the object durably; returns its digest and size."""
        place = await self._thread(self._archive.store_at, copy.url)
        draft = await self._thread(place.draft, copy.name)
        try:
            writer = await self._thread(self._archive.writer, draft.target, topic.name.fqn, ledger.id, ledger.index)
            try:
                await self._read(topic.log, ledger, writer)
            except BaseException:
                await self._thread(writer.abandon)
                raise
            facts = await self._thread(writer.close)
            return facts.digest, await self._thread(draft.commit)
        except BaseException:
            await self._thread(draft.abandon)
            raise

    async def _read(self, managed: ManagedLedger, ledger: Ledger, into: Any) -> Any:
        """Pass every entry of a ledger, in order, to ``into.add`` (a digest or a writer); returns ``into``."""
        at, end = ledger.ordinal, ledger.end
        while at < end:
            run = await run_at(managed, at, min(1000, end - at))
            if run.first != at:
                raise ConflictError(f"{managed.name}: ledger {ledger.id} was trimmed while it was read")
            await self._thread(into.add, run.entries, run.counts)
            at += len(run.entries)
        return into

    async def _record(self, topic: Topic, ledger: Ledger, copy: Offload) -> Offload:
        if topic.closed and topic.log.deleted:
            raise ConflictError(f"{topic.name.fqn} was deleted while ledger {ledger.id} was being offloaded")
        await settled(lambda done, failed: topic.log.record_offload(ledger.id, copy, done, failed))
        self.counters.ledgers += 1
        return copy

    @property
    def url(self) -> str:
        """The URL of the object store for copies and for what jobs hand over; empty: none."""
        return self._url

    def required_place(self) -> str:
        """The URL of the object store. Raises PreconditionFailedError if there is none."""
        if not self._url:
            raise PreconditionFailedError(
                "there is no place to offload to: set offloadUrl (file:///path, s3://bucket/prefix, ...)"
            )
        return self._url

    async def _thread(self, work: Callable[..., T], *arguments: Any) -> T:
        doing = asyncio.get_running_loop().run_in_executor(self._store.archive_threads, work, *arguments)
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            # a thread cannot be stopped, and the file that it still writes must not be touched
            await asyncio.wait({doing})
            raise

    # on a timer -----------------------------------------------------------------------------------------------------

    async def look(self, topics: Iterable[Topic]) -> int:
        """Do one pass: begin due copies, release ledgers, delete unused objects; returns how many ledgers were
        released.

        Never raises for one topic or object: what fails is named, and tried again later.
        """
        released = 0
        async for topic in in_turns(topics):
            if topic.closed:
                continue
            if self._url and self._may(topic.name.fqn) and self.status(topic.name).status != "RUNNING":
                due = due_ledgers(topic.log, topic.policies, self._clock.now_ms())
                if due:
                    self._begin(topic, due)
            lag = topic.policies.offload_deletion_lag_ms
            for ledger in list(topic.log.table.ledgers) if lag >= 0 else ():
                copy = ledger.offload
                if copy is None or copy.released or self._clock.now_ms() < copy.recorded_ms + lag:
                    continue
                released += await self._guarded(copy.key, self._release(topic, ledger, copy))
        if self._store.discarded:
            await self._guarded("deleting copies", self._delete())
        return released

    async def _release(self, topic: Topic, ledger: Ledger, copy: Offload) -> None:
        """Release the local entries of a ledger whose copy can be read."""
        async with self._one:
            if ledger.offload == copy:
                await self._thread(self._archive.check, copy, ledger.id)
            if topic.log.deleted or topic.log.table.of_id(ledger.id) is not ledger or ledger.offload != copy:
                return
            released = copy._replace(released=True)
            await settled(lambda done, failed: topic.log.record_offload(ledger.id, released, done, failed))
            self.counters.released += 1

    async def _delete(self) -> None:
        """Delete objects that no record names, once that is durable; stop at a store in which one cannot be deleted
        now."""
        gone = [copy for copy in self._store.discarded.values() if copy.key not in self._writing]
        await settled(self._store.journal.barrier)
        refused: set[str] = set()
        for copy in gone:
            if copy.url in refused or not self._may(copy.key):
                continue
            if not await self._guarded(copy.key, self._delete_one(copy)):
                refused.add(copy.url)

    async def _delete_one(self, copy: Offload) -> None:
        async with self._one:
            # not while it is written or adopted, and not if that was done meanwhile
            if copy.key in self._store.discarded and copy.key not in self._writing:
                await self._thread(self._archive.delete, copy)
                self._store.copy_deleted(copy)
                self.counters.deleted += 1

    async def _guarded(self, key: str, work: Any) -> int:
        """Returns 1 if it was done; a failure is logged and tried again later."""
        if not self._may(key):
            work.close()
            return 0
        try:
            await work
        except Exception as error:
            known = isinstance(error, MagnetarError | OSError)
            text = "%s: %s; nothing was let go, it is tried again later"
            log.error(text, key, error, exc_info=None if known else error)
            self.counters.failures += 1
            self._not_before[key] = self._clock.now_ms() + _RETRY_MS
            return 0
        return 1

    def _may(self, key: str) -> bool:
        at = self._not_before.get(key)
        if at is not None and self._clock.now_ms() >= at:
            del self._not_before[key]
            at = None
        return at is None


# which ledgers ------------------------------------------------------------------------------------------------------


def complete(managed: ManagedLedger, ledger_id: int) -> Ledger:
    """The ledger, which can be copied: closed, whole, not trimmed in part. Raises ConflictError if it cannot."""
    ledger = managed.sealed(ledger_id)
    if not ledger.entries:
        raise ConflictError(f"{managed.name}: ledger {ledger_id} is empty")
    if ledger.ordinal < managed.first:
        raise ConflictError(f"{managed.name}: the beginning of ledger {ledger_id} was let go already")
    return ledger


def candidates(managed: ManagedLedger) -> list[Ledger]:
    """Ledgers that can be copied and have no copy, oldest first."""
    found = []
    for ledger in managed.table.ledgers[:-1]:
        if ledger.offload is None:
            try:
                found.append(complete(managed, ledger.id))
            except ConflictError:
                continue
    return found


def due_ledgers(managed: ManagedLedger, policies: TopicPolicies, now_ms: int) -> list[Ledger]:
    """The ledgers that policies want copied now: those above the size that may stay, and those that are too old."""
    size, seconds = policies.offload_threshold, policies.offload_threshold_s
    if size < 0 and seconds < 0:
        return []
    left = sum(ledger.bytes for ledger in managed.table.ledgers if ledger.offload is None)
    due = []
    for ledger in candidates(managed):
        old = seconds >= 0 and now_ms - ledger.closed_ms >= seconds * 1000
        if old or (size >= 0 and left > size):
            due.append(ledger)
            left -= ledger.bytes
    return due


def first_unoffloaded(managed: ManagedLedger) -> Position:
    """The position of the first entry that has no copy."""
    for ledger in managed.table.ledgers:
        if ledger.offload is None:
            return Position(ledger.id, 0)
    return EARLIEST


def _object_name(topic: TopicName, ledger: int, rng: Random) -> str:
    """The name of an object: readable, in the order of the ledgers, never used twice."""
    return f"{folder_of(topic)}/ledger-{ledger:016d}-{rng.getrandbits(64):016x}.parquet"
