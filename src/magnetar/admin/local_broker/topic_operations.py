"""What REST does to one loaded topic beside reading it: end, empty, trim, expire, reset; awaited until durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from magnetar.broker.topic.cleanup.expiry import expire
from magnetar.broker.topic.cleanup.retention import apply_retention
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import PersistenceError
from magnetar.model.ids import Position
from magnetar.model.policies import JsonObject, Retention
from magnetar.runtime.answers import settled

_DURABLE_SECONDS = 30.0

Done = Callable[[], None]
Failed = Callable[[PersistenceError], None]


async def durable(register: Callable[[Done, Failed], None]) -> None:
    """Until the first of the two callbacks that ``register`` was given is called: the change is durable, or lost."""
    try:
        async with asyncio.timeout(_DURABLE_SECONDS):
            await settled(register)
    except TimeoutError:
        raise PersistenceError(
            f"the change is not on the disk after {_DURABLE_SECONDS:g} s; it may still become durable: look again"
        ) from None


async def terminate(topic: Topic) -> JsonObject:
    """The last message's id; entry -1 of the open ledger if there is none (SEMANTICS 4.7.1)."""
    await durable(topic.termination.terminate)
    position = topic.log.position(topic.log.end - 1) if topic.log.end else topic.log.position(-1)
    return {
        "ledgerId": position.ledger,
        "entryId": position.entry,
        "partitionIndex": topic.name.partition_index,
        "batchIndex": -1,
        "batchSize": 0,
    }


async def truncate(topic: Topic) -> None:
    """Everything that is stored now is acknowledged and let go."""
    log = topic.log
    await durable(log.barrier)
    end = log.end
    for subscription in list(topic.subscriptions.values()):
        subscription.skip_until(end - 1)
    log.open_ledger()
    topic.trim_to(min(end, topic.slowest() + 1), 0)
    await durable(log.barrier)


async def trim(topic: Topic) -> int:
    """What upkeep does once in a while, now; how many ledgers went."""
    if topic.policies.retention == Retention(0, 0):
        dropped = topic.trim()
    else:
        dropped = await apply_retention(topic, topic.clock.now_ms())
    await durable(topic.log.barrier)
    return dropped


async def expire_older(topic: Topic, subscription: Subscription, seconds: int) -> bool:
    """Whether any message was older than that, and now counts as acknowledged (11.5.6)."""
    gone = await expire(subscription, topic.clock.now_ms() - seconds * 1000)
    await durable(topic.log.barrier)
    return gone > 0


async def expire_until(topic: Topic, subscription: Subscription, position: Position, *, excluded: bool) -> bool:
    """The same by a message's id."""
    exact = topic.log.exact_ordinal(position)
    last = topic.log.ordinal(position) - 1 if exact is None or excluded else exact
    gone = subscription.expire_until(last) if last > subscription.cursor.mark_delete else 0
    await durable(topic.log.barrier)
    return gone > 0


async def reset_to(topic: Topic, subscription: Subscription, position: Position, *, excluded: bool) -> None:
    """The message at ``position`` is the next one, or the one behind it."""
    exact = topic.log.exact_ordinal(position)
    ordinal = topic.log.ordinal(position) if exact is None else exact + excluded
    await durable(lambda done, _: subscription.seek_to(ordinal, done))
