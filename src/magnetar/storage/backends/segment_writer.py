"""Writes the newest segment as a file: a group at a time through a committer, and never into a file without a name.

An operator may remove, replace or cut the file, or move the directory, while it is open. So what was written is only
reported when the file has a name and is as long as it was left, and once a second only when that name is the
segment's. A file without a name is written anew from the open one, which has everything, and the next block begins a
segment: readers that hold the old file find all of this segment in it. What was cut off is lost and named.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Final

from magnetar.storage.backends.committer import Committer, ThreadCommitter
from magnetar.storage.backends.files import File, FileSystem
from magnetar.storage.backends.journal_backend import Chunk, Committed, segment_name
from magnetar.storage.backends.lost_segment import require_in_place, restore
from magnetar.storage.backends.newest_segment import note_newest
from magnetar.storage.backends.zeros_ahead import NO_ZEROS, ZerosAhead

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0


class LocalSegmentWriter:
    """Implements :class:`magnetar.storage.backends.journal_backend.SegmentWriter`; lives on the event loop.

    ``executor`` has one worker; neither it nor ``committer`` is closed here.
    """

    def __init__(self, files: FileSystem, executor: Executor, committer: Committer | None = None) -> None:
        self._files = files
        self._executor = executor
        self._committer = committer or ThreadCommitter(executor)
        self._file: File | None = None
        self._number = 0
        self._length = 0
        """Durable bytes of the open segment."""
        self._ahead = ZerosAhead()
        self._nameless = False
        """The open file had no name when it was asked last."""
        self._lost = False
        """The open file has no name any more: what it holds must get one before anything else is written."""
        self._ended = False
        """The segment takes no more, though its file is open."""
        self._begun_uncut = False
        """The last segment could not be begun, nor what was written of it be cut off."""
        self._looked = False
        """The open file's name and length were asked in this very call: the next write begins within it."""
        self._look_at = 0.0
        """When it is looked next whether the segment's file was removed."""

    @property
    def zeros_written(self) -> int:
        """See :class:`SegmentWriter`."""
        return self._ahead.written

    @property
    def takes_blocks(self) -> bool:
        return self._file is not None and not self._ended

    def begin(self, number: int, chunks: Sequence[Chunk], size: int, sync: bool, done: Committed) -> None:
        """See :class:`SegmentWriter`."""
        work = asyncio.get_running_loop().run_in_executor(self._executor, self._begin, number, chunks, sync)
        work.add_done_callback(partial(self._begun, number, size, done))

    def append(self, chunks: Sequence[Chunk], size: int, sync: bool, done: Committed, lead: int | None = None) -> None:
        """See :class:`SegmentWriter`."""
        assert self._file is not None
        at, end = self._length, self._length + size
        # written after a hole, it would look whole
        if not self._looked and (wrong := self._shorter_than(at)) is not None:
            asyncio.get_running_loop().call_soon(done, wrong)
            return
        zeros = self._ahead.after(end, size) if sync else NO_ZEROS
        self._committer.commit(self._file, at, chunks, sync, partial(self._appended, end, done), lead, zeros)

    def abandon(self) -> bool:
        """Cut off what was refused: after a failed sync it may be readable now and gone after a power loss."""
        cut, self._begun_uncut = not self._begun_uncut, False
        if not self._lost and not self._in_place():
            self._lost = self._ended = True  # what it holds is nowhere else
        if self._file is None or self._lost:
            return cut
        try:
            self._file.truncate(self._left())
        except OSError as error:
            cut = False
            log.warning("%s could not be cut to %d bytes: %s", segment_name(self._number), self._length, error)
        self._file.close()
        self._file = None
        return cut

    def close(self) -> None:
        """See :class:`SegmentWriter`."""
        if self._file is None:
            return
        if not self._in_place():
            try:
                restore(self._files, self._number, self._file, self._left()).close()
            except OSError as error:
                log.error("%s is gone, and so is what was written to it: %s", segment_name(self._number), error)
        self._file.close()
        self._file = None

    # in the executor -----------------------------------------------------------------------------------------------

    def _begin(self, number: int, chunks: Sequence[Chunk], sync: bool) -> File:
        if self._file is not None and (self._lost or not self._in_place()):
            restore(self._files, self._number, self._file, self._left()).close()
        require_in_place(self._files)
        file = self._files.open(segment_name(number), create=True)
        try:
            file.truncate(0)
            file.append(chunks)
            # once for each segment, whatever the setting: it is noted as begun, and what comes before it is there
            if not sync and self._file is not None:
                self._file.sync()
            file.sync()
            self._files.sync()
            note_newest(self._files, number)
        except BaseException:
            # in the page cache it would count at a start after a kill, and be gone after a power loss
            self._begun_uncut = True
            with suppress(OSError):
                file.truncate(0)
                self._begun_uncut = False
            file.close()
            raise
        return file

    def _left(self) -> int:
        """How much of the durable bytes the open file has still, if it was cut from outside."""
        return 0 if self._file is None else min(self._length, self._file.size())

    def _in_place(self) -> bool:
        """Whether the segment's name, and the directory's, still lead to what is open."""
        return self._file is None or self._files.holds(segment_name(self._number), self._file)

    # on the loop ---------------------------------------------------------------------------------------------------

    def _begun(self, number: int, size: int, done: Committed, work: asyncio.Future[File]) -> None:
        error = work.exception()
        if error is not None:
            done(error)
            return
        if self._file is not None:
            self._file.close()
        self._file = work.result()
        self._number = number
        self._length = 0
        self._ahead.segment_begun()
        self._lost = self._ended = False
        self._appended(size, done, None)

    def _appended(self, end: int, done: Committed, error: BaseException | None) -> None:
        if error is None and self._file is not None:
            error = self._shorter_than(end)
            if error is None and self._is_gone():
                self._lost = self._ended = True
                restoring = partial(restore, self._files, self._number, self._file, end)
                work = asyncio.get_running_loop().run_in_executor(self._executor, restoring)
                work.add_done_callback(partial(self._restored, end, done))
                return
            if error is None:
                self._length = end
                self._looked = True
        try:
            done(error)
        finally:
            self._looked = False

    def _shorter_than(self, end: int) -> OSError | None:
        """What is wrong with the open file, if it was cut below ``end`` or the disk says nothing of it any more."""
        assert self._file is not None
        try:
            names, size = self._file.names_and_size()
        except OSError as error:
            return error
        self._nameless = not names
        if size >= end:
            return None
        name = segment_name(self._number)
        text = f"{name} was cut to {size} of {end} bytes by another program: what they held is lost"
        log.error("%s; the next block begins a segment", text)
        return OSError(errno.EIO, text)

    def _is_gone(self) -> bool:
        """Whether the open file has no name, or, which is looked at now and then only, another name."""
        now = asyncio.get_running_loop().time()
        if self._nameless or now < self._look_at:
            return self._nameless
        self._look_at = now + _LOOK_SECONDS
        return not self._in_place()

    def _restored(self, end: int, done: Committed, work: asyncio.Future[File]) -> None:
        error = work.exception()
        if error is None:
            if self._file is not None:
                self._file.close()
            self._file = work.result()
            self._lost = False
            self._length = end
        done(error)
