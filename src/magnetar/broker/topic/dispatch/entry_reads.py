"""Disk reads for one subscription: at most one at a time, tried again when they fail.

What memory has is answered at once. Otherwise the disk is asked, and the pump takes another turn when it has answered.
A read that fails is tried again after a growing pause; a range that is damaged on disk stays in the way until an
operator or a setting says that it is to be skipped (:mod:`magnetar.broker.topic.dispatch.unreadable_ranges`).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Final, Protocol

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.suspect_entries import SuspectEntries
from magnetar.broker.topic.dispatch.unreadable_ranges import UnreadableRanges
from magnetar.broker.topic.ports import EntryRun, Log, SubscriptionCursor
from magnetar.model.errors import UnreadableError

log = logging.getLogger(__name__)

_RETRY_MAX_S: Final = 60.0


class ReadOwner(Protocol):
    """The pump that the entries are read for."""

    def turn(self) -> object:
        """Go on: a read has returned, or it is time to try again."""
        ...

    def skip_unreadable(self) -> object:
        """The damaged range in the way is to be skipped."""
        ...


class EntryReads:
    """One subscription's source of entries; on the loop of its topic."""

    __slots__ = (
        "_asked", "_cursor", "_fetched", "_generation", "_met_suspects", "_name", "_owner", "_reached", "_retry",
        "_retry_s", "_source", "_topic_log", "reading", "settings", "suspects", "trouble", "unreadable",
    )  # fmt: skip

    def __init__(
        self, name: object, source: Log, cursor: SubscriptionCursor, settings: DispatchSettings, owner: ReadOwner
    ) -> None:
        self._name = name
        """As text it names the subscription, which is seldom asked for."""
        self._source = source
        self._topic_log = source
        self._cursor = cursor
        self.settings = settings
        self._owner: ReadOwner | None = owner
        self._fetched: EntryRun | None = None
        """What the last disk read brought."""
        self.reading = False
        """Whether the disk was asked and has not answered."""
        self._generation = 0
        """Restarts and changes of the source; a read that began before the last one counts no more."""
        self._asked = 0
        """Where the read that is under way begins."""
        self._retry: asyncio.TimerHandle | None = None
        self._retry_s = settings.read_retry_s
        self.trouble = ""
        """What the last read said, while it is to be tried again."""
        self.unreadable = UnreadableRanges()
        self._met_suspects = 0
        self._reached = 0
        """The pump has been there, before it was rewound."""
        self.suspects: SuspectEntries | None = None
        """What is to be looked at before it goes out again; None: nothing."""

    def rewound_from(self, read_at: int) -> None:
        """Entries before this one may be out still."""
        self._reached = max(self._reached, read_at)

    def suspect(self, read_at: int) -> SuspectEntries | None:
        """A connection was lost that may have had any unacknowledged entry; a rule to add, if it is new."""
        until = max(read_at, self._reached)
        if until <= self._cursor.mark_delete + 1:
            return None
        suspects, new = self.suspects, None
        if suspects is None:
            suspects = self.suspects = new = SuspectEntries(str(self._name), self._cursor, self.unreadable)
        suspects.extend(until)
        return new

    def restart(self) -> None:
        """Forget what is under way."""
        self._cancel_retry()
        self._forget()

    def sought(self) -> None:
        """What could not be read may not be wanted any more: the next read need not wait."""
        self._cancel_retry()

    def let_go(self, before: int) -> None:
        """Forget what the last disk read brought if all of it stands before this ordinal: it has been sent.

        Not to be called with more while entries wait to be sent again: each consumer with one permit would have all of
        it read once more.
        """
        fetched = self._fetched
        if fetched is not None and fetched.first + len(fetched.entries) <= before:
            self._fetched = None

    def change_source(self, source: Log) -> None:
        """Read from there from now on."""
        self._source = source
        self._forget()

    def _forget(self) -> None:
        self._fetched = None
        self.reading = False
        self._generation += 1

    def close(self) -> None:
        """A read under way is ignored when it returns."""
        self._owner = None
        self._fetched = None
        self._cancel_retry()

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def run_at(self, start: int, entries_max: int) -> EntryRun | None:
        """A run that covers ``start``; None: the disk was asked, is still busy, or brought what has to be skipped."""
        run = self._run_at(start, entries_max)
        if run is None or self.suspects is None or run.first > start:
            return run
        self._met_suspects = self.suspects.met(run, start, start + entries_max)
        return None if self._met_suspects else run

    def met_suspects(self) -> int:
        """Entries for which the last run was held back, because the filter knows more now; asked once for each."""
        met, self._met_suspects = self._met_suspects, 0
        return met

    def _run_at(self, start: int, entries_max: int) -> EntryRun | None:
        fetched = self._fetched
        if fetched is not None:
            if fetched.first <= start < fetched.first + len(fetched.entries):
                return fetched
            self._fetched = None
        bytes_max = self.settings.dispatcher_max_read_size_bytes
        run = self._source.cached(start, entries_max, bytes_max)
        if run is None and not self.reading and self._may_ask():
            self.reading = True
            self._asked = start
            self._source.read(start, entries_max, bytes_max, partial(self._read_done, self._generation))
        return run

    def _may_ask(self) -> bool:
        """Whether the disk may be asked now: what could not be read is not waited for once it is acknowledged."""
        if self._retry is not None and self._cursor.acknowledged(self._asked):
            self._cancel_retry()
        return self._retry is None

    def _read_done(self, generation: int, result: EntryRun | Exception) -> None:
        if generation != self._generation:
            return
        self.reading = False
        self.trouble = ""
        owner = self._owner
        if owner is None:
            return
        if isinstance(result, Exception):
            self.trouble = str(result)
            if isinstance(result, UnreadableError) and self._source is self._topic_log:
                self._met_unreadable(owner, result)
                return
            text = "subscription %s: read failed, next try in %.0f s: %s"
            log.warning(text, self._name, self._retry_s, result, extra=self._known)
            self._try_again_in(self._retry_s)
            self._retry_s = min(2 * self._retry_s, _RETRY_MAX_S)
            return
        self._retry_s = self.settings.read_retry_s
        self._fetched = result
        self.unreadable.waiting = None
        owner.turn()

    def _met_unreadable(self, owner: ReadOwner, error: UnreadableError) -> None:
        """Name the range once; then skip it if that is allowed, or try again now and then: a disk may be repaired."""
        start, stop = self._asked, min(error.stop, self._source.end)
        if self.unreadable.met(start, stop):
            ids = f"{self._source.position(start)} to {self._source.position(stop - 1)}"
            log.error("subscription %s: messages %s cannot be read: %s", self._name, ids, error, extra=self._known)
        if self.settings.auto_skip_non_recoverable_data:
            owner.skip_unreadable()
        else:
            self._try_again_in(_RETRY_MAX_S)

    def skip_unreadable(self) -> list[int]:
        """What cannot be read and is in the way, to be acknowledged: the ordinals that are not."""
        if self.unreadable.waiting is None:
            return []
        start, stop = self.unreadable.waiting
        left = [ordinal for ordinal in range(start, stop) if not self._cursor.acknowledged(ordinal)]
        self.unreadable.passed(len(left))
        text = "subscription %s: %d messages that cannot be read are skipped"
        log.error(text, self._name, len(left), extra=self._known)
        self.trouble = ""
        self._cancel_retry()
        return left

    @property
    def _known(self) -> dict[str, object]:
        """What a line of the log can say besides."""
        return {"subscription": str(self._name), "topic": getattr(self._topic_log, "name", "")}

    def _try_again_in(self, seconds: float) -> None:
        self._retry = asyncio.get_running_loop().call_later(seconds, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        if self._owner is not None:
            self._owner.turn()
