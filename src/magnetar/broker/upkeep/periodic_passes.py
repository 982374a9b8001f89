"""The periodic passes: trimming and retention, offloading, expiry, backlog quotas, and the deletion of inactive topics
and subscriptions, each on its own period and all on the injected clock and loop time.

A pass goes over the loaded topics; what it does to one of them has a module of its own. A topic that fails (its
disk does not read) is named and does not keep the others from their turn.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import perf_counter
from typing import Final, NamedTuple

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.cleanup.retention import apply_retention
from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep.inactive_topics import InactiveTopicRemoval
from magnetar.broker.upkeep.unloaded_topics import UnloadedTopics
from magnetar.config.properties import words
from magnetar.model.errors import PersistenceError, ServiceNotReadyError
from magnetar.model.policies import Retention
from magnetar.runtime.callbacks import settled
from magnetar.runtime.tasks import EarlyCall, TaskGroup, in_turns

log = logging.getLogger(__name__)

_TRIM_SECONDS: Final = 10.0
_TRIM_REST: Final = 20
"""While much is written trimming is asked for more often; between two passes lies this many times what one takes."""
_EXPIRY_REST: Final = 20
"""The same for expiry, which is asked for when messages get a shorter time to live."""
_OFFLOAD_SECONDS: Final = 30.0
_SPACE_SECONDS: Final = 10.0
_AT_REST_SECONDS: Final = 10.0
_NO_RETENTION: Final = Retention(0, 0)


class _Pass(NamedTuple):
    name: str
    seconds: float | Callable[[], float]
    run: Callable[[], Awaitable[object]]
    early: EarlyCall | None = None


class Upkeep:
    """Runs each pass as a background task of the broker."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        self._tasks = TaskGroup("upkeep")
        self.inactive_topics = InactiveTopicRemoval(service)
        self.unloaded_topics = UnloadedTopics(service)
        settings = service.settings
        self._never_expire = frozenset(words(settings.additionalSystemCursorNames))
        store = service.store
        filled = EarlyCall(_TRIM_REST)
        store.keeper.on_checkpoint = filled.ask
        shortened = EarlyCall(_EXPIRY_REST)
        service.policy_notification.on_shorter_life = shortened.ask
        self._passes = [
            _Pass("trim", _TRIM_SECONDS, self.trim, filled),
            _Pass("retention", settings.retentionCheckIntervalInSeconds, self.retain),
            _Pass("at rest", _AT_REST_SECONDS, self.look_at_unused),
            _Pass("offload", _OFFLOAD_SECONDS, self.offload),
            _Pass("space", _SPACE_SECONDS, store.cleaner.run, store.cleaner.early),
            _Pass("expiry", settings.messageExpiryCheckIntervalInMinutes * 60, self.expire, shortened),
            _Pass(
                "inactive topics",
                lambda: settings.brokerDeleteInactiveTopicsFrequencySeconds,
                self.inactive_topics.delete_topics,
            ),
            _Pass(
                "expired subscriptions",
                settings.subscriptionExpiryCheckIntervalInMinutes * 60,
                self.inactive_topics.delete_subscriptions,
            ),
        ]
        if settings.backlogQuotaCheckEnabled:
            self._passes.append(_Pass("quotas", settings.backlogQuotaCheckIntervalInSeconds, self.check_quotas))

    def start(self) -> None:
        """Begin; needs a running loop."""
        doubt = self._service.store.keep_all
        if doubt is not None:
            log.error(
                "the policies are in doubt (%s): nothing is trimmed, expired, evicted or deleted until an operator has "
                "checked them: stop the broker, then magnetar rescue metadata DIR",
                doubt,
            )
            return
        self._service.store.full_disk.let_go = self.trim
        for one in self._passes:
            self._tasks.repeat(one.seconds, one.run, one.name, one.early)

    async def close(self) -> None:
        """End."""
        await self._tasks.close()

    async def _each(self, what: str, act: Callable[[Topic], Awaitable[int] | None]) -> int:
        """Do ``act`` on all loaded topics; returns the sum of its results. None: there is nothing to do for a topic."""
        total = 0
        async for topic in in_turns(list(self._service.topics.values())):
            doing = None if topic.closed else act(topic)
            if doing is None:
                continue
            try:
                total += await doing
            except Exception as error:
                log.error("%s of %s failed: %s", what, topic.name.fqn, error, extra={"topic": topic.name.fqn})
        return total

    # the passes --------------------------------------------------------------------------------------------------

    async def trim(self) -> int:
        """Drop closed ledgers that every durable subscription has consumed (rule 4.2.2); returns how many."""
        unstored = self._service.nonpersistent_topics
        async for one in in_turns(list(unstored.by_name.values())):
            unstored.collect_one(one)
        dropped = 0
        async for topic in in_turns(list(self._service.topics.values())):
            if not topic.closed:
                dropped += topic.trim()
                topic.checks.tidy()
        await self._give_back(dropped)
        return dropped

    async def retain(self) -> int:
        """Drop what the topics' retention no longer keeps (rule 4.4); returns how many ledgers."""
        now = self._service.clock.now_ms()
        dropped = await self._each(
            "retention",
            lambda topic: None if topic.policies.retention == _NO_RETENTION else apply_retention(topic, now),
        )
        await self._give_back(dropped)
        return dropped

    async def look_at_unused(self) -> int:
        """Trim and expire topics that were not used since the start; returns how many ledgers were dropped."""
        dropped = await self.unloaded_topics.look()
        await self._give_back(dropped)
        return dropped

    async def _give_back(self, dropped: int) -> None:
        if dropped:
            with suppress(PersistenceError):  # it is written again until the disk takes it
                await settled(self._service.store.journal.barrier)
            await self._service.store.keeper.remove_dead()

    async def offload(self) -> int:
        """Run the offloader's pass; returns how many ledgers' local entries were released."""
        released = await self._service.offloader.look(list(self._service.topics.values()))
        await self._give_back(released)
        return released

    async def expire(self) -> int:
        """Expire unacknowledged messages that are older than their time to live (rule 4.5); returns how many
        entries."""
        return await self._each("expiry", lambda topic: self._expire(topic) if topic.policies.message_ttl_s else None)

    async def _expire(self, topic: Topic) -> int:
        before = self._service.clock.now_ms() - topic.policies.message_ttl_s * 1000
        due = (one for one in topic.subscriptions.each() if one.name not in self._never_expire)
        return sum([await expire(subscription, before) async for subscription in in_turns(due)])

    async def check_quotas(self) -> None:
        """Enforce backlog quotas (rule 4.6)."""
        began = perf_counter()
        await self._each("backlog quota", lambda topic: self._check_quota(topic) if topic.quotas.any else None)
        self._service.activity.quota_check_seconds.add(perf_counter() - began)

    async def check_quotas_now(self) -> None:
        """:meth:`check_quotas` on demand. Raises ServiceNotReadyError if the policies are in doubt."""
        doubt = self._service.store.keep_all
        if doubt is not None:
            raise ServiceNotReadyError(f"nothing is evicted, because the policies are in doubt: {doubt}")
        await self.check_quotas()

    async def _check_quota(self, topic: Topic) -> int:
        await topic.quotas.check(self._service.clock.now_ms())
        return 0
