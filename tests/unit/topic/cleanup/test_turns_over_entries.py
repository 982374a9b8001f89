"""Others have a turn after each piece of a topic that is gone through, also where all of it is in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from magnetar.broker.throttling.passes import Passes
from magnetar.broker.topic.cleanup.backlog_quotas import BacklogQuotas
from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.cleanup.retention import RetentionRule, RetentionScan
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.subscription.backlog import BacklogSize
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.model.topic_policies import BacklogQuota, QuotaPolicy, TopicPolicies
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.runtime.clock import SystemClock
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.loop_turns import turns_of_others

PIECES, EACH = 20, 5
ENTRY = build_entry(EntryMetadata("p", 0, 1000), b"x")


async def _expire(log: ManagedLedger, subscriptions: Subscriptions) -> None:
    assert await expire(subscriptions["s"], 2000) == PIECES * EACH


async def _measure(log: ManagedLedger, subscriptions: Subscriptions) -> None:
    assert await BacklogSize(log).behind(PIECES * EACH - 2) == len(ENTRY)


async def _retain(log: ManagedLedger, subscriptions: Subscriptions) -> None:
    kept, hidden = await RetentionScan(log, RetentionRule(None, 0), 2000).to(PIECES * EACH - 1)
    assert (kept, hidden) == (PIECES * EACH - 1, (PIECES * EACH - 1) * len(ENTRY))


async def _evict(log: ManagedLedger, subscriptions: Subscriptions) -> None:
    policies = TopicPolicies(size_quota=BacklogQuota(2 * len(ENTRY), QuotaPolicy.EVICT))
    await BacklogQuotas(log, cast("Producers", None), subscriptions, policies).check(0)
    assert subscriptions["s"].cursor.mark_delete == PIECES * EACH - 2


@pytest.mark.parametrize("work", [_expire, _measure, _retain, _evict])
def test_others_have_a_turn_after_each_piece(work: Callable[[ManagedLedger, Subscriptions], Awaitable[None]]) -> None:
    async def main() -> None:
        store = LocalLedgerStore(FaultFileSystem(random.Random(0)), SystemClock())
        store.open()
        log = store.open_log("t")
        subscriptions = Subscriptions(TopicIdentity("t"), log, DispatchSettings(), SystemClock(), Passes())
        subscriptions.open("s", durable=True, ordinal=lambda: 0, properties={}, done=lambda: None)
        for _ in range(PIECES):
            for _ in range(EACH):
                log.append(ENTRY, 1, None)
            await store.journal.drain()
        with turns_of_others() as turns:
            await asyncio.sleep(0)
            before = turns.count
            await work(log, subscriptions)
        assert turns.count - before >= PIECES - 1
        await store.close()

    asyncio.run(main())
