"""What a test asks of one topic: its messages, backlogs, subscriptions and producers, and that they become so.

All calls answer from the broker's own state, at once and without a trace in it; a topic with partitions answers for
all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from magnetar.broker.topic.topic import Topic
from magnetar.client.machines.message import Message
from magnetar.model.errors import NotFoundError
from magnetar.model.names import TopicName
from magnetar.runtime.clock import steady_seconds
from magnetar.testing.kit import stored_content
from magnetar.testing.kit.broker_thread import BrokerThread, WouldBlockError
from magnetar.testing.kit.call_arguments import checked
from magnetar.testing.kit.embedded_broker import EmbeddedBroker

Found = TypeVar("Found")

_LOOK_SECONDS: Final = 0.002
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class InspectedSubscription:
    """One subscription at one moment."""

    name: str
    type: str | None
    """Exclusive, Shared, Failover or Key_Shared; None before its first consumer."""
    backlog: int
    """Messages that it has not acknowledged; 0 for a non-persistent topic, which keeps none."""
    consumers: tuple[str, ...]
    """Names of the consumers that are connected."""


@dataclass(frozen=True, slots=True)
class InspectedProducer:
    """One connected producer at one moment."""

    name: str
    topic: str
    """In full; of a partitioned topic the partition."""
    address: str
    client_version: str
    properties: dict[str, str]


class TopicInspection:
    """One topic, which need not exist yet: ``broker.topic("orders")``. Its calls may come from any thread."""

    def __init__(self, embedded: EmbeddedBroker, thread: BrokerThread, name: str) -> None:
        """Raises InvalidTopicNameError, ArgumentError."""
        checked("topic", name=name)
        self._embedded = embedded
        self._thread = thread
        self._name = TopicName.parse(name)

    @property
    def name(self) -> str:
        """The full name."""
        return self._name.fqn

    def exists(self) -> bool:
        """Whether there is such a topic, with partitions or without."""

        async def look() -> bool:
            service = self._embedded.broker.service
            return service.exists(self._name) or bool(service.partitions_of(self._name))

        return self._thread.call(look)

    def messages(self, limit: int = 1_000) -> list[Message]:
        """Return up to ``limit`` messages that are stored, in order, also those that are acknowledged already.

        Messages of open or aborted transactions are left out, and encrypted ones. Raises NotFoundError.
        """
        checked("messages", limit=limit)
        return self._thread.call(lambda: self._messages(limit))

    async def _messages(self, limit: int) -> list[Message]:
        found: list[Message] = []
        for topic in stored_content.stored(self._embedded.broker.service, self._name):
            found += await stored_content.messages(topic, limit - len(found))
            if len(found) >= limit:
                break
        return found

    def backlog(self, subscription: str) -> int:
        """Return how many messages a subscription has not acknowledged; of a batch all, until it is acknowledged.

        Raises NotFoundError, which names the subscriptions there are.
        """
        checked("backlog", subscription=subscription)
        return self._thread.call(lambda: self._backlog(subscription))

    async def _backlog(self, name: str) -> int:
        count, there = 0, False
        topics = stored_content.stored(self._embedded.broker.service, self._name)
        for topic in topics:
            if name in topic.subscriptions:
                there = True
                count += await stored_content.unacknowledged(topic, topic.subscriptions[name])
        if not there:
            names = sorted({found for topic in topics for found in topic.subscriptions})
            raise NotFoundError(
                f"{self._name.fqn} has no subscription {name!r}; it has: {', '.join(names[:_SHOWN]) or 'none'}"
            )
        return count

    def subscriptions(self) -> dict[str, InspectedSubscription]:
        """Return the subscriptions by name. Raises NotFoundError."""
        return self._thread.call(self._subscriptions)

    async def _subscriptions(self) -> dict[str, InspectedSubscription]:
        found: dict[str, InspectedSubscription] = {}
        for topic in stored_content.served(self._embedded.broker.service, self._name):
            for name in topic.subscriptions:
                one, before = topic.subscriptions[name], found.get(name)
                backlog = 0
                if isinstance(topic, Topic):
                    backlog = await stored_content.unacknowledged(topic, topic.subscriptions[name])
                consumers = tuple(consumer.name for consumer in one.consumers)
                if before is not None:
                    backlog += before.backlog
                    consumers = tuple(dict.fromkeys((*before.consumers, *consumers)))
                kind = None if one.sub_type is None else one.sub_type.name
                found[name] = InspectedSubscription(name, kind, backlog, consumers)
        return found

    def producers(self) -> list[InspectedProducer]:
        """Return the producers that are connected. Raises NotFoundError."""

        async def look() -> list[InspectedProducer]:
            return [
                InspectedProducer(
                    one.info.name, topic.name.fqn, one.info.address, one.info.client_version, dict(one.info.metadata)
                )
                for topic in stored_content.served(self._embedded.broker.service, self._name)
                for one in topic.producers
            ]

        return self._thread.call(look)

    # waiting -----------------------------------------------------------------------------------------------------

    def expect(self, count: int, timeout: float = 5.0) -> list[Message]:
        """Wait until exactly ``count`` messages are stored, and return them.

        ``timeout`` is in real seconds. Raises AssertionError that shows what is there, at once if there are more;
        WouldBlockError in an event loop.
        """
        checked("expect", count=count, timeout=timeout)
        self._may_wait("expect")
        return self._thread.call(lambda: self._expect(count, timeout))

    async def expect_async(self, count: int, timeout: float = 5.0) -> list[Message]:
        """Do as :meth:`expect`, while the event loop of the caller runs on."""
        checked("expect_async", count=count, timeout=timeout)
        return await self._thread.await_(lambda: self._expect(count, timeout))

    def expect_backlog(self, subscription: str, count: int = 0, timeout: float = 5.0) -> None:
        """Wait until a subscription has not acknowledged exactly ``count`` messages. Raises as :meth:`expect`."""
        checked("expect_backlog", subscription=subscription, count=count, timeout=timeout)
        self._may_wait("expect_backlog")
        self._thread.call(lambda: self._expect_backlog(subscription, count, timeout))

    async def expect_backlog_async(self, subscription: str, count: int = 0, timeout: float = 5.0) -> None:
        """Do as :meth:`expect_backlog`, while the event loop of the caller runs on."""
        checked("expect_backlog_async", subscription=subscription, count=count, timeout=timeout)
        await self._thread.await_(lambda: self._expect_backlog(subscription, count, timeout))

    def _may_wait(self, call: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise WouldBlockError(f"within an event loop: await {call}_async(…), so that the loop runs on")

    async def _expect(self, count: int, timeout: float) -> list[Message]:
        async def look() -> list[Message]:
            try:
                return await self._messages(count + 1)
            except NotFoundError:
                return []

        found = await _until(look, lambda messages: len(messages) >= count, timeout)
        if len(found) != count:
            shown = "".join(f"\n  {one!r}: {one.data()[:60]!r}" for one in found[:_SHOWN])
            many = f"{len(found)}" if len(found) <= count else "more"
            raise AssertionError(
                f"{self._name.fqn}: {count} messages were expected within {timeout:g} s, there are {many}{shown}"
            )
        return found

    async def _expect_backlog(self, subscription: str, count: int, timeout: float) -> None:
        async def look() -> int | None:
            try:
                return await self._backlog(subscription)
            except NotFoundError:
                return None

        found = await _until(look, lambda backlog: backlog == count, timeout)
        if found != count:
            there = "there is no such subscription" if found is None else f"it is {found}"
            raise AssertionError(
                f"{self._name.fqn}, {subscription}: a backlog of {count} was expected within {timeout:g} s, {there}"
            )


async def _until(look: Callable[[], Awaitable[Found]], enough: Callable[[Found], bool], timeout: float) -> Found:
    """Look until it is enough or time is over, by the machine's clock; returns what was found last."""
    until = steady_seconds() + timeout
    while not enough(found := await look()) and steady_seconds() < until:
        await asyncio.sleep(_LOOK_SECONDS)
    return found
