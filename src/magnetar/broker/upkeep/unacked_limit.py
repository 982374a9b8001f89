"""The limit of unacknowledged messages of the whole broker, which holds back the subscriptions with many (rule 5.9.10).

Each second the messages are counted that Shared and Key_Shared subscriptions have out. From
``maxUnackedMessagesPerBroker`` on no subscription may have more than a share of that: one that has gets no more until
its consumers have acknowledged down to half the share. All go on when the broker is below half of its limit.

Between two looks more may go out than the limit says. Apache Pulsar looks each half minute, for the first time ten
minutes after the start. All loaded topics hear of a change: with very many of them it takes a while, and clients that
take and acknowledge in turn could ask for one after the other, so that the next look waits for a multiple of that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from magnetar.broker.delivery.dispatchers.dispatcher import Dispatcher
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.topic import Topic
from magnetar.runtime.tasks import TaskGroup, in_turns

log = logging.getLogger(__name__)

_SECONDS: Final = 1.0
_REST: Final = 20
"""After a change there is no look for so many times what it took, but for no longer than Apache Pulsar's period."""
_REST_MAX_SECONDS: Final = 30.0


class UnackedLimit:
    """Owns the timer; there is none without a limit."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        settings = service.settings
        part = settings.maxUnackedMessagesPerSubscriptionOnBrokerBlocked
        self._most = settings.maxUnackedMessagesPerBroker if part > 0 else 0
        self._share = max(int(self._most * part), 1)
        self._over = False
        self._tasks = TaskGroup("unacked limit")

    def start(self) -> None:
        """Begin, if there is a limit; needs a running loop."""
        if self._most:
            self._tasks.repeat(_SECONDS, self.look, "look")

    async def close(self) -> None:
        """End."""
        await self._tasks.close()

    async def look(self) -> int:
        """Count once, and limit subscriptions or let them go on; returns the number of messages."""
        out = 0
        async for dispatcher in in_turns(_dispatchers(list(self._service.topics.values()))):
            out += 0 if dispatcher is None else dispatcher.unacked
        if not self._over and out >= self._most:
            log.warning(
                "%d messages are not acknowledged (maxUnackedMessagesPerBroker=%d): subscriptions with %d or more get "
                "no others", out, self._most, self._share,
            )  # fmt: skip
            self._over = True
            await self._change(self._share)
        elif self._over and out < self._most / 2:
            log.info("%d messages are not acknowledged: all subscriptions go on", out)
            self._over = False
            await self._change(0)
        return out

    async def _change(self, share: int) -> None:
        now = asyncio.get_running_loop().time
        begun = now()
        self._service.set_unacked_share(share)
        await self._service.policy_notification.all_notified()
        await asyncio.sleep(min(_REST * (now() - begun), _REST_MAX_SECONDS))


def _dispatchers(topics: Iterable[Topic]) -> Iterator[Dispatcher | None]:
    for topic in topics:
        for subscription in topic.loaded_subscriptions():
            yield subscription.pump.dispatcher
