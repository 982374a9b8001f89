"""Watches that subscriptions deliver when they could: one timer for the whole broker.

Every ``seconds`` each subscription with consumers is asked whether it ought to be sending
(:mod:`magnetar.broker.topic.subscription.progress`). One that ought to, and has not moved since the last look, stands
still: its state goes to the log, it is counted, and healed: first by a new turn with a fresh read; if that did not help
by the next look, by closing its consumers, which subscribe again to a subscription that starts from its cursor. Nothing
is lost by either; the second may deliver again what was not acknowledged.

This should never find anything. It is there because a message that waits for ever for a forgotten wake-up is the
worst fault that a broker can have, and the least visible.
"""

from __future__ import annotations

import json
import logging
from typing import Final, NamedTuple

from magnetar.broker.service import BrokerService
from magnetar.broker.topic.subscription.explanation import explain
from magnetar.broker.topic.subscription.progress import Progress
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.runtime.tasks import TaskGroup, in_turns

log = logging.getLogger(__name__)

_TOPICS_PER_TURN: Final = 100


class _Look(NamedTuple):
    """The state of a subscription at the last look."""

    progress: Progress
    stuck: int
    """The number of looks in a row that found it standing still."""


class Liveness:
    """Owns the timer; the service counts what was healed."""

    def __init__(self, service: BrokerService, seconds: float) -> None:
        self._service = service
        self._seconds = seconds
        self._looks: dict[Subscription, _Look] = {}
        self._tasks = TaskGroup("liveness")

    def start(self) -> None:
        """Begin, unless switched off; needs a running loop."""
        if self._seconds > 0:
            self._tasks.repeat(self._seconds, self.look, "look")

    async def close(self) -> None:
        """End."""
        await self._tasks.close()

    async def look(self) -> int:
        """Look at all subscriptions once; returns how many were healed."""
        looks: dict[Subscription, _Look] = {}
        healed = 0
        async for topic in in_turns(list(self._service.topics.values()), _TOPICS_PER_TURN):
            for subscription in topic.loaded_subscriptions():
                if subscription.consumers:
                    look = self._judge(subscription)
                    looks[subscription] = look
                    healed += look.stuck > 0
        self._looks = looks
        return healed

    def _judge(self, subscription: Subscription) -> _Look:
        now = subscription.progress()
        before = self._looks.get(subscription)
        if before is None or before.progress != now or subscription.pump.reads.trouble:
            return _Look(now, 0)
        why = subscription.should_send()
        if not why:
            return _Look(now, 0)
        stuck = before.stuck + 1
        self._service.stuck_total += 1
        log.error(
            "subscription %s of %s stands still since %g s although %s; healed by %s. State: %s",
            subscription.name, subscription.topic.name, self._seconds * stuck, why,
            "letting its consumers connect anew" if stuck > 1 else "a new turn", json.dumps(dump(subscription)),
            extra={"topic": subscription.topic.name, "subscription": subscription.name},
        )  # fmt: skip
        subscription.heal(firmly=stuck > 1)
        return _Look(subscription.progress() if stuck > 1 else now, stuck)


def dump(subscription: Subscription) -> dict[str, object]:
    """All state that decides what is sent, for the log."""
    stats = subscription.stats()
    return {
        "type": stats.type,
        "progress": subscription.progress()._asdict(),
        "acknowledged": [
            list(stretch) for stretch, _ in zip(subscription.cursor.acknowledged_ranges(), range(20), strict=False)
        ],
        "reading": subscription.pump.reads.reading,
        "blocked": stats.blocked_on_unacked,
        "delayed": stats.delayed_entries,
        "consumers": [
            {
                "name": consumer.name,
                "permits": consumer.state.permits,
                "parked": consumer.state.parked,
                "blocked": consumer.state.blocked,
                "writable": consumer.connection.writable,
                "unacked": consumer.state.unacked,
                "pending": sorted(consumer.state.pending)[:20],
            }
            for consumer in subscription.consumers
        ],
        "findings": [finding._asdict() for finding in explain(subscription)],
    }
