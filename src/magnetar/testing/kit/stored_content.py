"""What lies in the topics of a broker, read from its log without a subscription; runs in the broker's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.subscription.backlog import run_at
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.client.machines.consumption import Consumption
from magnetar.client.machines.consumption_limits import ConsumptionLimits
from magnetar.client.machines.message import Message
from magnetar.model.errors import NotFoundError
from magnetar.model.names import TopicName
from magnetar.model.system_topics import is_system_topic
from magnetar.protocol import commands as c
from magnetar.storage.ledgers.managed_ledger import ManagedLedger


def names(service: BrokerService, *, system: bool = False) -> list[str]:
    """Return the full names of all topics, each partition as one, sorted."""
    found = {*service.store.names(), *service.topics, *service.nonpersistent_topics.by_name}
    return sorted(name for name in found if system or not is_system_topic(TopicName.parse(name)))


def served(service: BrokerService, name: TopicName) -> list[Topic | NonPersistentTopic]:
    """Return the topic, or its partitions. Raises NotFoundError that names those there are."""
    partitions = service.partitions_of(name) or [name]
    found: list[Topic | NonPersistentTopic] = []
    for each in partitions:
        topic = service.find(each) if each.persistent else service.nonpersistent_topics.by_name.get(each.fqn)
        if topic is not None:
            found.append(topic)
    if not found:
        there = names(service)
        shown = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
        raise NotFoundError(f"there is no topic {name.fqn}; there are: {shown or 'none'}")
    return found


def stored(service: BrokerService, name: TopicName) -> list[Topic]:
    """Return those of :func:`served` that store messages. Raises NotFoundError."""
    return [topic for topic in served(service, name) if isinstance(topic, Topic)]


async def messages(topic: Topic, most: int, start: int | None = None) -> list[Message]:
    """Return up to ``most`` messages that are stored, the first of them first, acknowledged or not.

    Left out are markers and messages of open or aborted transactions, and entries that only a key can open.
    """
    log = topic.log
    queue = Consumption(
        topic.name.fqn, topic.name.partition_index, ConsumptionLimits(pending_chunked_messages=0), ordered=True
    )
    queue.opened(0)
    found: list[Message] = []
    at = log.first if start is None else max(start, log.first)
    end = min((rule.readable_end(log.end) for rule in topic.dispatch_rules), default=log.end)
    while at < min(end, log.end) and len(found) < most:
        run = await run_at(log, at, 1000)
        stop = min(run.first + len(run.entries), end)
        hidden = {one for rule in topic.dispatch_rules for one in rule.dead(run.first, max(stop, run.first + 1))}
        for number, entry in enumerate(run.entries[: stop - run.first]):
            if run.first + number in hidden:
                continue
            place = c.MessageIdData(run.ledger, run.entry + number)
            queue.received(c.CommandMessage(0, place, 0, (), None, None, entry))
            while queue.refill():
                found += reversed(queue.at_hand)
                queue.at_hand.clear()
                queue.used_up()
        at = max(stop, at + 1)
        await asyncio.sleep(0)
    return found[:most]


async def unacknowledged(topic: Topic, subscription: Subscription) -> int:
    """Return how many messages it has not acknowledged; of a batch all, until it is acknowledged as a whole."""
    log, count = topic.log, 0
    for low, high in open_stretches(log, subscription):
        at = low
        while at < high:
            run = await run_at(log, at, min(1000, high - at))
            counts = run.counts or [1] * len(run.entries)
            count += sum(counts[: high - run.first])
            at = run.first + len(run.entries)
    return count


def open_stretches(log: ManagedLedger, subscription: Subscription) -> Iterator[tuple[int, int]]:
    """Yield the stretches of ordinals that it has not acknowledged."""
    cursor = subscription.cursor
    at = cursor.next_unacknowledged(max(cursor.mark_delete + 1, log.first))
    while at < log.end:
        stop = cursor.next_acknowledged(at, log.end)
        yield at, stop
        at = cursor.next_unacknowledged(stop)
