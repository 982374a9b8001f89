"""Which acknowledged messages are kept, and for how long (rules of 4.4): decided message by message.

From the front, an entry that every durable subscription has acknowledged is let go if it is older than the time limit,
or if at least the size limit lies after it; at the first one that is not, everything stays. How old an entry is: its
publish time, but never outside the life of its ledger, because producers' clocks may be wrong. Storage gives back whole
ledgers; what is let go of the first ledger is hidden at once.

Each entry is looked at once, when its turn to go has come; ledgers that go as a whole are not read at all. A pass reads
at most ``BUDGET_BYTES`` per topic: a topic that lets go of more keeps the rest until the next pass.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from magnetar.broker.topic.subscription.backlog import run_at
from magnetar.model.policies import Retention
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.stored_metadata import stored_publish_time
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

BUDGET_BYTES: Final = 64 << 20


class RetainedTopic(Protocol):
    """The part of a topic that matters here."""

    log: ManagedLedger
    policies: TopicPolicies
    closed: bool

    def slowest(self) -> int: ...
    def trim_to(self, keep_from: int, hidden_bytes: int) -> int: ...


class RetentionRule(NamedTuple):
    """The two limits, as numbers to compare with; the one that is exceeded first decides."""

    cutoff_ms: int | None
    """What was stored before may go; None: time decides nothing."""
    size: int | None
    """What has so many bytes after it may go; None: size decides nothing."""

    @staticmethod
    def of(retention: Retention, now_ms: int) -> RetentionRule:
        """The rule of a policy: for (0, 0) everything may go, for (-1, -1) nothing."""
        return RetentionRule(
            None if retention.minutes < 0 else now_ms - retention.minutes * 60_000 + (retention.minutes == 0),
            None if retention.megabytes < 0 else retention.megabytes << 20,
        )

    def lets_go(self, stored_ms: int, bytes_behind: int) -> bool:
        """Whether an entry may go, if all before it may."""
        old = self.cutoff_ms is not None and stored_ms < self.cutoff_ms
        return old or (self.size is not None and bytes_behind >= self.size)


def stored_ms(published_ms: int, ledger: Ledger, now_ms: int) -> int:
    """Return when an entry was stored, as nearly as it can be known."""
    return max(ledger.opened_ms, min(published_ms, ledger.closed_ms or now_ms))


def _published(entry: bytes) -> int:
    """Return the publish time; an entry that cannot be read is as young as its ledger."""
    time = stored_publish_time(entry)
    return 1 << 62 if time is None else time


async def apply_retention(topic: RetainedTopic, now_ms: int) -> int:
    """One pass over one topic with retention; how many ledgers went. Raises what reading raised."""
    rule = RetentionRule.of(topic.policies.retention, now_ms)
    if rule == (None, None):
        return 0
    consumed = topic.slowest() + 1
    keep_from, hidden = await RetentionScan(topic.log, rule, now_ms).to(consumed)
    # while the disk was read a consumer may have sought back, or the topic was closed
    if topic.closed or topic.slowest() + 1 < keep_from or keep_from <= topic.log.first:
        return 0
    return topic.trim_to(keep_from, hidden)


class RetentionScan:
    """A scan from the front of the log to the first entry that stays."""

    def __init__(self, log: ManagedLedger, rule: RetentionRule, now_ms: int) -> None:
        self._log = log
        self._rule = rule
        self._now_ms = now_ms
        self._at = log.first
        self._gone = log.hidden_bytes
        """Bytes before ``_at`` in its ledger."""
        self._left = log.retained_bytes() - log.hidden_bytes
        """Bytes from ``_at`` on."""
        self._budget = BUDGET_BYTES

    async def to(self, consumed: int) -> tuple[int, int]:
        """Return where to keep from, at most ``consumed``, and the bytes before that in its ledger."""
        ledgers = list(self._log.table.ledgers)
        for ledger, following in zip(ledgers, [*ledgers[1:], None], strict=True):
            end = consumed if following is None else following.ordinal
            if following is not None and end <= consumed and self._all_may_go(ledger):
                self._left -= ledger.bytes - self._gone
            elif not await self._scan(ledger, min(end, consumed)) or following is None or end > consumed:
                break
            self._at, self._gone = end, 0
        return self._at, self._gone

    def _all_may_go(self, ledger: Ledger) -> bool:
        return self._rule.lets_go(stored_ms(1 << 62, ledger, self._now_ms), self._left - (ledger.bytes - self._gone))

    async def _scan(self, ledger: Ledger, stop: int) -> bool:
        """Entry by entry up to ``stop``; False if one has to stay or the budget is used up."""
        while self._at < stop:
            run = await run_at(self._log, self._at, min(1000, stop - self._at))
            if run.first != self._at:
                return False
            for entry in run.entries:
                size = len(entry)
                if not self._rule.lets_go(stored_ms(_published(entry), ledger, self._now_ms), self._left - size):
                    return False
                self._at += 1
                self._gone += size
                self._left -= size
                self._budget -= size
            if self._budget <= 0:
                return self._at == stop
            await asyncio.sleep(0)
        return True
