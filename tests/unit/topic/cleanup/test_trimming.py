"""What a topic lets go of, and that it says how many ledgers that were (rules 4.2.2, 4.2.3, 4.3.2)."""

from __future__ import annotations

import asyncio
import random

import pytest

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.policies import Retention
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.clock import SystemClock
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem

NAME = TopicName.parse("persistent://public/default/t")
IN_A_LEDGER = 4


async def loaded(policies: TopicPolicies, entries: int) -> tuple[LedgerStore, Topic]:
    files = FaultFileSystem(random.Random(0))
    store = LocalLedgerStore(
        files, SystemClock(), StoreSettings(ledger_entries_max=IN_A_LEDGER, ledger_min_rollover_ms=0)
    )
    store.open()
    topic = Topic(NAME, store, DispatchSettings(), SystemClock(), random.Random(1), policies)
    for _ in range(entries):
        topic.log.append(b"x", 1, None)
        await store.journal.drain()
    return store, topic


def subscribe(topic: Topic, name: str, mark: int, *, durable: bool = True) -> None:
    made = topic.subscription(name, durable=durable, ordinal=lambda: 0, properties={}, done=lambda: None)
    made.cursor.acknowledge_until(mark)


@pytest.mark.parametrize(
    ("marks", "gone"), [((-1, 11), 0), ((2, 11), 0), ((3, 11), 1), ((6, 7), 1), ((9, 7), 2), ((11, 11), 3), ((), 3)]
)
def test_ledgers_that_every_durable_subscription_has_consumed_go_and_are_counted(
    marks: tuple[int, ...], gone: int
) -> None:
    """A reader keeps none: it goes on after them (rule 4.4.1)."""

    async def main() -> None:
        store, topic = await loaded(TopicPolicies(), 3 * IN_A_LEDGER + 2)
        for mark in marks:
            subscribe(topic, f"s{mark}{len(topic.subscriptions)}", mark)
        subscribe(topic, "reader", -1, durable=False)
        reader = topic.subscriptions["reader"].cursor
        assert topic.slowest() == min(marks, default=3 * IN_A_LEDGER + 1)
        assert topic.trim() == gone
        assert topic.log.first == gone * IN_A_LEDGER
        assert reader.mark_delete == topic.log.first - 1
        assert topic.trim() == 0
        await store.close()

    asyncio.run(main())


def test_what_a_topic_retains_is_not_trimmed_but_by_retention_which_counts_as_well() -> None:
    async def main() -> None:
        store, topic = await loaded(TopicPolicies(retention=Retention(1, 1)), 3 * IN_A_LEDGER + 2)
        subscribe(topic, "reader", -1, durable=False)
        assert (topic.trim(), topic.log.first) == (0, 0)
        assert topic.trim_to(2 * IN_A_LEDGER + 1, 1) == 2
        assert topic.log.first == 2 * IN_A_LEDGER + 1
        assert topic.subscriptions["reader"].cursor.mark_delete == topic.log.first - 1
        await store.close()

    asyncio.run(main())
