"""What changes while a pass of expiry waits for the disk: what nobody looked at does not expire (4.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic

OLD, LATE = 1000, 1001
"""When a loaded topic's entries were published, and just after that."""


@pytest.mark.parametrize(
    ("meanwhile", "expired", "mark"),
    [
        (lambda subscription: None, 5, 9),
        (lambda subscription: subscription.seek_to(0), 0, -1),
        (lambda subscription: subscription.skip_until(6), 3, 9),
        (lambda subscription: subscription.close(), 0, 4),
    ],
    ids=["nothing", "sought back", "acknowledged", "unloaded"],
)
def test_who_goes_back_during_a_pass_loses_nothing(
    meanwhile: Callable[[Subscription], None], expired: int, mark: int
) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for i in range(10):
            place.append("k", str(i))
        place.topic.create_subscription("s", 0)
        await place.durable()
        subscription = place.topic.subscriptions["s"]
        subscription.skip_until(4)
        cursor = subscription.cursor
        await place.durable()
        await place.compact()  # which leaves nothing of the topic in memory
        running = asyncio.ensure_future(expire(subscription, LATE))
        await asyncio.sleep(0)
        assert not running.done(), "it waits for its read"
        meanwhile(subscription)
        assert await running == expired
        assert cursor.mark_delete == mark
        await place.durable()
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


@pytest.mark.parametrize(("before_ms", "expired"), [(OLD, 0), (LATE, 6)])
def test_a_message_of_the_limit_itself_stays(before_ms: int, expired: int) -> None:
    """Those in between that are acknowledged already do not count, and do not hold up those behind them."""

    async def main() -> None:
        place = LoadedTopic()
        for i in range(10):
            place.append("k", str(i))
        place.topic.create_subscription("s", 0)
        await place.durable()
        subscription = place.topic.subscriptions["s"]
        subscription.cursor.acknowledge([0, 1, 4, 9])
        assert await expire(subscription, before_ms) == expired
        assert subscription.cursor.backlog() == 6 - expired
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())
