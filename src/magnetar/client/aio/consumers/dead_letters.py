"""Messages on their way to a dead letter topic (rules of 6.5).

    dead --> copy published --receipt--> original acknowledged
                    |
                    failed --> the original comes again after a pause, is dead on arrival, and tried again

The pauses of one message grow with its own failures: one that no topic takes is not tried more often because others
are stored.

A message is acknowledged only after the receipt of its copy, so a crash may leave two copies, and never none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from magnetar.client.aio.consumers.letter_producer import (
    LetterAddress,
    LetterProducers,
    OpenOutlet,
    SchemaOfVersion,
    pause_after,
)
from magnetar.client.aio.topics.receipt import Receipt
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.redelivery.dead_letter_policy import (
    ConsumerDeadLetterPolicy,
    base_topic,
    dead_letter_topic,
)
from magnetar.client.machines.redelivery.last_deliveries import DeadMessage
from magnetar.client.machines.redelivery.letters import dead_letter
from magnetar.protocol import commands as c

_LOG: Final = logging.getLogger(__name__)
FAILURES_MAX: Final = 10_000
"""Messages whose failures are counted; those of older ones are counted anew."""
_QUIET: Final = 60.0
"""Seconds in which one line of the log says that messages of a topic could not be copied."""


class LetterSource(Protocol):
    """The consumer on one topic that a letter's original is from."""

    topic: str

    def done_with(self, message: Message[Any]) -> None:
        """Acknowledge the original."""
        ...

    def bring_again(self, message_id: MessageId, delay: float) -> None:
        """Have the original come again after ``delay`` seconds."""
        ...


class DeadLetterSender:
    """One consumer's way to its dead letter topics: one, or of several topics one for each."""

    def __init__(
        self,
        policy: ConsumerDeadLetterPolicy,
        subscription: str,
        consumer_name: str,
        schema: c.Schema | None,
        open_outlet: OpenOutlet,
        schema_of: SchemaOfVersion,
        nonce: str,
    ) -> None:
        """``nonce``: what makes the producers' names differ from those of other consumers of one name (rule 6.5.4)."""
        self.policy = policy
        self._subscription = subscription
        self._consumer_name = consumer_name
        self._schema = schema
        self._open_outlet = open_outlet
        self._schema_of = schema_of
        self._nonce = nonce
        self._loop = asyncio.get_running_loop()
        self._producers: dict[str, LetterProducers] = {}
        self._queue: deque[tuple[LetterSource, DeadMessage]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._failures: dict[tuple[str, MessageId], int] = {}
        """Of messages that could not be copied: how often."""
        self._said: dict[tuple[str, type], tuple[float, int]] = {}
        """By topic and kind of error: when the log has said so, and how often it was not said since."""
        self._closed = False

    def bury(self, source: LetterSource, dead: Sequence[DeadMessage]) -> None:
        """Copy messages and acknowledge them, in the background."""
        if self._closed:
            return
        self._queue += [(source, one) for one in dead]
        if self._worker is None and self._queue:
            self._worker = self._loop.create_task(self._work(), name=f"dead letters of {self._subscription}")

    async def _work(self) -> None:
        try:
            while self._queue:
                source, dead = self._queue.popleft()
                try:
                    receipt = await self.post(source, dead)
                except Exception as error:
                    self._failed(source, dead, error)
                else:
                    receipt.add_done_callback(partial(self._settled, source, dead))
        finally:
            self._worker = None

    async def post(self, source: LetterSource, dead: DeadMessage, retried: Mapping[str, str] | None = None) -> Receipt:
        """Publish the copy of one message; ``retried``: the properties of the retry that it is instead of.

        Raises as `LetterProducers.post`.
        """
        topic = self.policy.dead_letter_topic or dead_letter_topic(source.topic, self._subscription)
        producer = self._producers.get(topic)
        if producer is None:
            name = f"{base_topic(source.topic)}-{self._subscription}-{self._consumer_name}-{self._nonce}-DLQ"
            policy = self.policy
            address = LetterAddress(topic, name, policy.initial_subscription_name, self._schema, policy.letter_producer)
            producer = self._producers[topic] = LetterProducers(self._open_outlet, address, self._schema_of)
        letter = dead_letter(dead, self._subscription, self._consumer_name, retried)
        return await producer.post(letter, dead.message)

    def _settled(self, source: LetterSource, dead: DeadMessage, done: asyncio.Future[MessageId]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is None and not done.cancelled():
            self._failures.pop((source.topic, dead.message.message_id()), None)
            source.done_with(dead.message)
        else:
            self._failed(source, dead, error)

    def _failed(self, source: LetterSource, dead: DeadMessage, error: BaseException | None) -> None:
        if self._closed:
            return  # it was not acknowledged, and comes again to a consumer that is there
        message_id = dead.message.message_id()
        failures = self._failures.pop((source.topic, message_id), 0) + 1
        self._failures[source.topic, message_id] = failures
        if len(self._failures) > FAILURES_MAX:
            del self._failures[next(iter(self._failures))]
        pause = pause_after(failures)
        self._say(source.topic, message_id, pause, error)
        source.bring_again(message_id, pause)

    def _say(self, topic: str, message_id: MessageId, pause: float, error: BaseException | None) -> None:
        kind, now = (topic, type(error)), self._loop.time()
        said, more = self._said.get(kind, (now - _QUIET, 0))
        if now - said < _QUIET:
            self._said[kind] = said, more + 1
            return
        self._said[kind] = now, 0
        _LOG.warning(
            "%s: message %s could not be copied to its dead letter topic; it stays unacknowledged and comes again in "
            "%.1f s%s: %s",
            topic, message_id, pause, f" ({more} more such failures since the last such line)" if more else "", error,
        )  # fmt: skip

    async def close(self) -> None:
        """Wait for the copies that are on their way; what waits still comes again to a consumer that is there."""
        self._closed = True
        self._queue.clear()
        worker = self._worker
        if worker is not None:
            worker.cancel()
            await asyncio.wait([worker])
        await asyncio.gather(*(one.close() for one in self._producers.values()), return_exceptions=True)
