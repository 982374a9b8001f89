"""Group commit: everything that waits is written together, with one sync for all topics and connections.

Theory of operation. Appends, acknowledgments and other changes join the open group. If no write is under way the
group is written at the end of the loop's turn, so all that arrived in one wake-up shares it; while a write is under
way the next group fills. One write at a time, and the next begins only when the one before is durable: that is what
lets recovery distinguish a torn tail from corruption (:mod:`magnetar.storage.log.records`).

A write or sync that fails is never retried as if it could still succeed: everything in flight fails, what counts of
the segment ends at the last durable byte, and the next group begins a new segment that says so in its header.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import Clock
from magnetar.storage.backends.journal_backend import Chunk, SegmentWriter, is_full, segment_name
from magnetar.storage.log import records
from magnetar.storage.log.write_group import (
    CALLBACK_FAILED,
    DirtyCursor,
    DirtyFeatureState,
    Done,
    ExtentOwner,
    Failed,
    PendingExtent,
    PendingMove,
    WriteGroup,
    by_log,
    call_all,
)
from magnetar.storage.log.write_latency import WriteLatency

log = logging.getLogger(__name__)

_MANY_EXTENTS: Final = 16
"""From so many on the results of a group are handed out log by log."""
_RETRY_SECONDS: Final = 1.0
_MOVE_SECONDS: Final = 0.005
"""So long a move waits for a group that others wait for."""


class Journal:
    """The one writer of the log. Lives on the event loop; ``writer`` does the writing elsewhere."""

    def __init__(
        self, writer: SegmentWriter, clock: Clock, *,
        sync_data: bool = True, segment_bytes: int = 128 << 20, aligned_bytes_min: int = 32 << 10,
        ack_delay: float = 0.02,
    ) -> None:  # fmt: skip
        self._writer = writer
        self._clock = clock
        self.sync_data = sync_data
        self._segment_bytes = segment_bytes
        self._aligned_bytes_min = aligned_bytes_min
        self._ack_delay = ack_delay
        self.on_sealed: Callable[[int, int, int], None] = _nothing
        """Called with a segment's number, its length and the next block's sequence when it takes no more."""
        self._loop: asyncio.AbstractEventLoop
        self._group = WriteGroup()
        self._writing: WriteGroup | None = None
        self._scheduled = False
        self._lazy: asyncio.TimerHandle | None = None
        self._own_segment = False
        self.segment = 0
        """Number of the segment that is being written."""
        self.length = 0
        """Durable bytes of it."""
        self.sequence = 0
        """Sequence of the next block."""
        self._secret = 0
        self.pending_bytes = 0
        """Entry bytes accepted and not yet durable; what back-pressure looks at."""
        self.failing: PersistenceError | None = None
        """The error of the last write, while no write has succeeded since."""
        self.full: PersistenceError | None = None
        """Why no entries are taken, though everything else is: what is left of the disk is for what makes space."""
        self.on_full: Callable[[], object] = _nothing
        """Called when a write failed because the disk is full."""
        self.writes = 0
        self.latency = WriteLatency()
        self.bytes_written = self.moved_bytes = 0
        """Bytes written, and those of them that were there already."""
        self._rolling = False
        self._written_to = 0
        """Where the group that is being written ends."""
        self._write_size = 0
        self._idle: list[asyncio.Future[None]] = []
        self._closed = False

    def start(self, segment: int, previous_length: int, sequence: int, secret: int) -> None:
        """Begin writing; ``segment`` is the last one that exists, the first group makes the next one."""
        self._secret = secret
        self._loop = asyncio.get_running_loop()
        self.segment = segment
        self.length = previous_length
        self.sequence = sequence

    # joining the open group -------------------------------------------------------------------------------------

    def add_extent(self, log_id: int, extent: PendingExtent) -> None:
        """The extent may be filled until the group is written."""
        group = self._group
        if not group.extents:
            group.oldest = perf_counter()
        group.extents.append((log_id, extent))
        if not self._scheduled:
            self._schedule()

    def add_record(self, record: bytes, done: Done | None = None, failed: Failed | None = None) -> None:
        """``done`` is called when the record is durable, ``failed`` if it could not be made so.

        A record without ``failed`` is written again with the next group, as often as it takes.
        """
        self._group.records.append(record)
        if failed is None:
            self._group.kept.append(record)
        self._wait(done, failed)

    def withdraw(self, unwritten: list[bytes], done: Done) -> None:
        """Write these records no more, whose writing has failed, and forget who waits for them."""
        self._group.withdraw(unwritten, done)

    def touch(self, cursor: DirtyCursor, done: Done | None) -> None:
        """Have the cursor's changes in the next group; at once if there is a waiter, else within ``ack_delay``."""
        self._group.cursors[cursor] = None
        self._touched(done)

    def touch_feature_state(self, feature_state: DirtyFeatureState, done: Done | None) -> None:
        """Have a feature's changes in the next group; at once if there is a waiter, else within ``ack_delay``."""
        self._group.feature_states[feature_state] = None
        self._touched(done)

    def _touched(self, done: Done | None) -> None:
        if done is not None:
            self._wait(done, None)
        elif not self._scheduled and self._lazy is None:
            self._lazy = self._loop.call_later(self._ack_delay, self._schedule)

    @property
    def open_bytes(self) -> int:
        """Bytes in the segment that takes the next group, if there is one already."""
        return self.length if self._own_segment and self._writer.takes_blocks else 0

    def add_move(self, move: PendingMove) -> None:
        """Have it after everything else in the next group; there is at most one in each.

        It never makes a write of its own while others come.
        """
        assert self._group.move is None
        self._group.move = move
        if not self._scheduled and self._lazy is None:
            self._lazy = self._loop.call_later(_MOVE_SECONDS, self._schedule)

    def roll(self, done: Done, failed: Failed) -> None:
        """Begin a new segment, now; ``done`` when it is there."""
        self._rolling = True
        self._wait(done, failed)

    def barrier(self, done: Done, failed: Failed | None = None) -> None:
        """Call ``done`` when everything that was given to the journal before is durable; at once if it is already."""
        if self._writing is None and not self._group:
            done()
        else:
            self._wait(done, failed)

    def _wait(self, done: Done | None, failed: Failed | None) -> None:
        if done is not None or failed is not None:
            self._group.waiters.append((done or _nothing, failed))
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        if not self._scheduled:
            self._scheduled = True
            if self._writing is None:
                self._loop.call_soon(self._flush)

    # writing -----------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._writing is not None or self._closed:
            return
        group = self._group
        if not group:
            self._scheduled = False
            return
        if self.full is not None and (group.extents or group.move is not None):
            self._group = WriteGroup()
            self._fail(group, WriteGroup(), self.full)
            group = self._group
            if not group or group.extents or group.move is not None:
                return
        self._group = group.held_back()
        self._scheduled = False
        self._writing = group
        group.began = perf_counter()
        new = not self._writer.takes_blocks or self._rolling or self.length >= self._segment_bytes
        base = records.SEGMENT_HEADER_SIZE if new else self.length
        try:
            chunks, size, lead = self._encode(group, base, may_align=self.sync_data and not new)
        except Exception as error:
            self._loop.call_soon(self._written, error)  # or nothing would ever be written again
            return
        self._written_to = base + size
        self._write_size = self._written_to if new else size
        if not new:
            self._writer.append(chunks, size, self.sync_data, self._written, lead)
            return
        header = records.SegmentHeader(self.segment + 1, self.length, self.sequence, self._clock.now_ms(), self._secret)
        chunks.insert(0, records.segment_header(header))
        self._writer.begin(header.number, chunks, self._written_to, self.sync_data, self._begun)

    def _encode(self, group: WriteGroup, base: int, *, may_align: bool) -> tuple[list[Chunk], int, int | None]:
        """Encode the group as one block and note in every extent where it will lie.

        A large block gets zeros before and after it, so that it lies on whole pages; how many before is returned.
        """
        chunks: list[Chunk] = [b""]
        size = 0
        count = 0
        # a ledger's or cursor's beginning is a record, so records stand before the extents that need them
        changes = (
            [record for feature_state in group.feature_states for record in feature_state.render()]
            if group.feature_states
            else ()
        )
        for record in (*group.records, *[cursor.render() for cursor in group.cursors], *changes):
            if record:
                chunks.append(record)
                size += len(record)
                count += 1
        # entries of one ledger lie side by side whatever order they came in
        extents = group.extents
        if len(extents) > 2:
            extents.sort(key=by_log)
        count += len(extents)
        offset = base + records.BLOCK_HEADER_SIZE
        for log_id, extent in extents:
            place = log_id, extent.ledger, extent.entry, extent.ordinal, extent.index
            extent.owner.extent_closed()
            extent.offset = offset + size
            length = records.extent(place, extent.published_ms, extent.entries, extent.counts, extent.size, chunks)
            extent.length = length
            size += length
        move = group.move
        if move is not None:
            move.begun()
            move.offset = offset + size
            chunks.append(move.data)
            size += len(move.data)
            count += move.records
        chunks[0] = records.block_header(count, size, self.sequence, self._secret)
        size += records.BLOCK_HEADER_SIZE
        if not may_align or size < self._aligned_bytes_min:
            return chunks, size, None
        lead = records.page_end(base) - base
        if lead:
            chunks[0] = bytes(lead) + chunks[0]
            size += lead
            for _, extent in extents:
                extent.offset += lead
            if move is not None:
                move.offset += lead
        tail = records.page_end(base + size) - (base + size)
        if tail:
            chunks.append(bytes(tail))
        return chunks, size + tail, lead

    def _begun(self, error: BaseException | None) -> None:
        if error is None:
            if self._own_segment:
                self.on_sealed(self.segment, self.length, self.sequence)
            self._own_segment = True
            self._rolling = False
            self.segment += 1
            self.length = 0
        self._written(error)

    def _written(self, error: BaseException | None) -> None:
        group, self._writing = self._writing, None
        self._scheduled = False
        assert group is not None
        if error is not None:
            self._write_failed(group, error)
            return
        self.bytes_written += self._write_size
        if group.move is not None:
            self.moved_bytes += len(group.move.data) if group.pressing else self._write_size
        self.length = self._written_to
        self.sequence += 1
        self.failing = None
        self.writes += 1
        if group.feature_states:
            call_all([feature_state.written for feature_state in group.feature_states])
        if self._group.pressing or (self._group.move is not None and self._lazy is None):
            # keep the disk busy while the results of this group are handed out
            self._flush()
        self._hand_out(group)

    def _hand_out(self, group: WriteGroup) -> None:
        extents = group.extents
        group.ended = perf_counter()
        self.pending_bytes -= sum([extent.size for _, extent in extents])
        if len(extents) >= _MANY_EXTENTS and group.move is None and not group.waiters:
            group.hand_out(self.segment, self.latency.add(group))
            self._release()
            return
        owners: dict[ExtentOwner, None] = {}
        for _, extent in extents:  # few, or a caller waits for what else is in the group
            extent.segment = self.segment
            owners[extent.owner] = None
            try:
                extent.owner.extent_durable(extent)
            except Exception:
                log.exception(CALLBACK_FAILED)
        if (move := group.move) is not None:
            call_all([partial(move.done, self.segment, move.offset)])
        call_all([done for done, _ in group.waiters])
        call_all([owner.on_group for owner in owners])
        if extents:
            # after what was put into outboxes just now is written
            self._loop.call_soon(self.latency.count, group)
        self._release()

    def _write_failed(self, group: WriteGroup, cause: BaseException) -> None:
        cut = self._writer.abandon()
        left = "" if cut else ", but it could not be cut off: a crash may bring it back"
        error = PersistenceError(
            f"writing {segment_name(self.segment)} failed: {cause}; nothing of it was accepted{left}"
        )
        if self.failing is None:
            log.error("%s", error, exc_info=None if isinstance(cause, OSError) else cause)
        self.failing = error
        if is_full(cause):
            self.on_full()
        waiting, self._group = self._group, WriteGroup()
        self._fail(group, waiting, error)

    def _fail(self, group: WriteGroup, waiting: WriteGroup, error: PersistenceError) -> None:
        """Refuse what can be refused; the rest is the open group from now on."""
        self._scheduled = False
        self._group.feature_states = group.feature_states | waiting.feature_states
        call_all([feature_state.lost for feature_state in self._group.feature_states])
        # acknowledgments stay dirty in memory and go, with who waits for them and records that must not be lost, into
        # the next group that can be written
        for lost in (group, waiting):
            for cursor in lost.cursors:
                cursor.lost()
            self._group.cursors.update(lost.cursors)
            self._group.records += lost.kept
            self._group.kept += lost.kept
            self._group.waiters += [waiter for waiter in lost.waiters if waiter[1] is None]
        for lost in (group, waiting):
            self.pending_bytes -= sum([extent.size for _, extent in lost.extents])
            call_all([partial(extent.owner.extent_failed, extent, error) for _, extent in lost.extents])
            call_all([partial(failed, error) for _, failed in lost.waiters if failed is not None])
            if lost.move is not None:
                call_all([partial(lost.move.failed, error)])
        if self._group and self._lazy is None:
            self._lazy = self._loop.call_later(_RETRY_SECONDS, self._schedule)
        self._release()

    def _release(self) -> None:
        if self._idle and self._writing is None and (not self._group or self.failing is not None):
            idle, self._idle = self._idle, []
            for future in idle:
                if not future.done():
                    future.set_result(None)

    async def drain(self) -> None:
        """Return when nothing waits to be written any more, or when writing it was tried and failed."""
        while self._writing is not None or self._group:
            if self._writing is None:
                self._schedule()
            future: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(future)
            await future
            if self.failing is not None:
                return

    def close(self) -> None:
        """Close the segment; call :meth:`drain` before. What a failing disk refused until now is not tried again."""
        self._closed = True
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        self._writer.close()


def _nothing(*_: object) -> None: ...
