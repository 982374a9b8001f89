"""Notifies loaded topics of their new policies: few topics at once, many in turns of the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import TopicPolicies

log = logging.getLogger(__name__)

AT_ONCE: Final = 500
"""Topics that are notified in one turn of the loop; a few milliseconds."""


class PolicyNotification:
    """Brings policies to loaded topics; lives on the event loop."""

    def __init__(self, policies_of: Callable[[TopicName], TopicPolicies]) -> None:
        self._policies_of = policies_of
        self._left: dict[Topic, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self.on_shorter_life: Callable[[], None] = _nothing
        """Messages of some topic have a shorter time to live than before, so what is there may have expired."""

    def notify(self, topics: Iterable[Topic]) -> None:
        """Give each topic, in its turn, the policies that it has then; a topic that waits already is notified once."""
        under_way = bool(self._left)
        self._left.update(dict.fromkeys(topics))
        if not under_way:
            self._work()

    def _work(self) -> None:
        for _ in range(min(AT_ONCE, len(self._left))):
            topic = next(iter(self._left))
            del self._left[topic]
            if topic.closed:
                continue
            try:
                self.give(topic)
            except Exception:
                log.exception("%s could not take its policies", topic.name, extra={"topic": topic.name})
        if self._left:
            asyncio.get_running_loop().call_soon(self._work)
            return
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def give(self, topic: Topic) -> None:
        """Give a topic its policies at once."""
        before = topic.policies.message_ttl_s
        topic.set_policies(self._policies_of(topic.name))
        now = topic.policies.message_ttl_s
        if now and (not before or now < before):
            self.on_shorter_life()

    async def all_notified(self) -> None:
        """Return when all topics are notified."""
        if self._left:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting


def _nothing() -> None: ...
