"""Backlog quotas (rules of 4.6): what happens when a backlog is too large or too old.

The size counts the bytes after the mark-delete position of the slowest durable subscription, the age the time since
its oldest message was published; both exactly. A topic over its quota either lets all producers go and admits none
until the backlog has shrunk, or lets go of the oldest messages of the slowest subscriptions.
"""

from __future__ import annotations

import asyncio
from typing import Final

from typing_extensions import override

from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.subscription.backlog import BacklogSize, bytes_behind, run_at
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.model.errors import MagnetarError, QuotaExceededError, QuotaExceededHoldError
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import QuotaPolicy, TopicPolicies
from magnetar.protocol.stored_metadata import stored_publish_time
from magnetar.runtime.tasks import in_turns
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

_TARGET: Final = 0.9
"""Eviction goes on to this part of the limit."""


class BacklogQuotas(TopicFeature):
    """One topic's quotas; made with it, idle while there is none."""

    def __init__(
        self, log: ManagedLedger, producers: Producers, subscriptions: Subscriptions,
        policies: TopicPolicies,
    ) -> None:  # fmt: skip
        self._log = log
        self._producers = producers
        self._subscriptions = subscriptions
        self._policies = policies
        self._size = BacklogSize(log)
        self._blocked: QuotaPolicy | None = None
        self._blocked_at = -1
        """Mark-delete position for which that was found."""
        self.oldest_name = ""
        """Which subscription had the oldest message at the last check."""
        self.oldest_published_ms = -1
        self.evicted = 0
        """Entries that subscriptions lost to a quota."""
        self.evictions_size = self.evictions_time = 0
        """How often a check found that quota exceeded and evicted."""

    @override
    def policies_changed(self, before: TopicPolicies, now: TopicPolicies) -> None:
        self._policies = now

    @property
    def any(self) -> bool:
        """Whether there is something to check."""
        policies = self._policies
        return policies.size_quota.limit >= 0 or policies.age_quota.limit > 0

    def check_producer(self) -> None:
        """May a producer come now? Raises QuotaExceededError or QuotaExceededHoldError (rule 3.1.8).

        Answers at once: the size is the estimate, the age what the last check found.
        """
        if not self.any:
            self._blocked = None
            return
        slowest, quota = self._slowest(), self._policies.size_quota
        if slowest is None:
            return
        mark = slowest.mark_delete
        policy = self._blocked if mark == self._blocked_at else None
        if policy is None and 0 <= quota.limit <= bytes_behind(self._log, mark):
            policy = quota.policy
        if policy is not None and policy is not QuotaPolicy.EVICT:
            raise _refusal(policy)

    async def check(self, now_ms: int) -> None:
        """One check; producers go or messages do. Raises what reading raised."""
        if not self.any:
            self._blocked = None
            return
        policies = self._policies
        blocked: QuotaPolicy | None = None
        if await self._too_much():
            if policies.size_quota.policy is QuotaPolicy.EVICT:
                self.evictions_size += 1
                await self._evict_size(policies.size_quota.limit)
            else:
                blocked = policies.size_quota.policy
        await self._look_for_oldest()
        if self._too_old(now_ms):
            if policies.age_quota.policy is QuotaPolicy.EVICT:
                self.evictions_time += 1
                await self._evict_age(now_ms - int(policies.age_quota.limit * 1000 * _TARGET))
            else:
                blocked = blocked or policies.age_quota.policy
        self._blocked = blocked
        if blocked is not None:
            slowest = self._slowest()
            self._blocked_at = -1 if slowest is None else slowest.mark_delete
            self._producers.close_all()

    def _readers(self) -> list[Cursor]:
        return [c for c in self._subscriptions.cursors() if c.durable and c.name != COMPACTION_SUBSCRIPTION]

    def _slowest(self) -> Cursor | None:
        return min(self._readers(), key=_mark_delete, default=None)

    # size --------------------------------------------------------------------------------------------------------

    async def _too_much(self) -> bool:
        limit, slowest = self._policies.size_quota.limit, self._slowest()
        if limit < 0 or slowest is None or slowest.mark_delete + 1 >= self._log.end:
            return False
        return await self._size.reaches(slowest.mark_delete, limit)

    async def _evict_size(self, limit: int) -> None:
        """Evict from those subscriptions that are over the limit, the slowest first."""
        last = -2
        async for reader in in_turns(sorted(self._readers(), key=_mark_delete)):
            mark = reader.mark_delete
            if mark + 1 >= self._log.end or not await self._size.reaches(mark, limit):
                continue  # those that follow may be slower by now: this one may have caught up meanwhile
            if last <= mark:  # it is the same place for all of them
                last = await self._last_to_go(mark, limit)
            # meanwhile it may have been deleted, or sought back
            found = self._subscriptions.get(reader.name)
            if found is not None and found.cursor is reader and reader.mark_delete >= mark and last > mark:
                self.evicted += found.expire_until(last)

    async def _last_to_go(self, mark: int, limit: int) -> int:
        """The ordinal up to which messages go: to 90 % of the limit, but not below, unless they are that large."""
        log, target = self._log, limit * _TARGET
        left = await self._size.behind(mark)
        at = mark + 1
        while at < log.end:
            run = await run_at(log, at)
            for entry in run.entries:
                if left < limit and left - len(entry) < target:
                    return at - 1
                left -= len(entry)
                at += 1
            await asyncio.sleep(0)
        return at - 1

    # age ---------------------------------------------------------------------------------------------------------

    async def _look_for_oldest(self) -> None:
        self.oldest_name, self.oldest_published_ms = "", -1
        slowest, log = self._slowest(), self._log
        if slowest is None or self._policies.age_quota.limit <= 0:
            return
        first = slowest.next_unacknowledged(slowest.mark_delete + 1)
        if first < log.end:
            # the first entry that can be read stands for those before it that cannot
            for most in (1, 1000):
                times = map(stored_publish_time, (await run_at(log, first, most)).entries)
                oldest = next((time for time in times if time is not None), None)
                if oldest is not None:
                    self.oldest_name, self.oldest_published_ms = slowest.name, oldest
                    return

    def _too_old(self, now_ms: int) -> bool:
        limit = self._policies.age_quota.limit
        return limit > 0 and self.oldest_published_ms >= 0 and self.oldest_published_ms + limit * 1000 < now_ms

    async def _evict_age(self, before_ms: int) -> None:
        async for subscription in in_turns(s for s in self._subscriptions.each() if s.durable):
            self.evicted += await expire(subscription, before_ms)


def _mark_delete(cursor: Cursor) -> int:
    return cursor.mark_delete


def _refusal(policy: QuotaPolicy) -> MagnetarError:
    text = (
        "org.apache.pulsar.broker.service.BrokerServiceException$TopicBacklogQuotaExceededException: "
        "Cannot create producer on topic with backlog quota exceeded"
    )
    return QuotaExceededHoldError(text) if policy is QuotaPolicy.HOLD else QuotaExceededError(text)
