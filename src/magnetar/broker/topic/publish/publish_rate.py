"""How fast clients may publish to one topic (rule 14.6): its policy ``publishRate``.

A token bucket for messages and one for bytes, each as large as what may come in a second. What has arrived is taken,
never refused; then the connection is read no further until both buckets hold something again. So every producer of
that connection waits, as with Apache Pulsar. A topic without a limit has no object of this kind, and its producers keep
their way in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from magnetar.broker.topic.publish.producer import Producer, Publish
from magnetar.model.topic_policies import PublishRate
from magnetar.protocol.commands import CommandSend
from magnetar.protocol.entries import messages_in


@runtime_checkable
class Throttled(Protocol):
    """A connection that can be made to wait."""

    def throttle(self, seconds: float) -> None:
        """Take nothing from the client for so long."""
        ...


class TokenBucket:
    """Tokens that come back at a steady rate; may be overdrawn by what was taken last."""

    __slots__ = ("_at", "_level", "_rate")

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._level = float(rate)
        self._at = now

    def take(self, tokens: int, now: float) -> float:
        """Seconds until there is a token again, 0 if there is one."""
        rate = self._rate
        self._level = min(self._level + (now - self._at) * rate, rate) - tokens
        self._at = now
        return 0.0 if self._level >= 1 else (1 - self._level) / rate


class PublishLimit:
    """The limit of one topic; ``now`` is a steady clock, in seconds."""

    def __init__(self, rate: PublishRate, now: Callable[[], float]) -> None:
        self.rate = rate
        self._now = now
        self._messages = TokenBucket(rate.messages, now()) if rate.messages > 0 else None
        self._bytes = TokenBucket(rate.bytes, now()) if rate.bytes > 0 else None
        self.times = 0
        """How often a connection was made to wait."""

    @staticmethod
    def wanted(rate: PublishRate) -> bool:
        """Whether there is anything to limit."""
        return rate.messages > 0 or rate.bytes > 0

    def way_in(self, producer: Producer, publish: Publish) -> Publish:
        """What that producer is to publish with."""
        return partial(self._publish, producer, publish)

    def _publish(self, producer: Producer, publish: Publish, message: CommandSend) -> None:
        publish(message)
        now, wait = self._now(), 0.0
        if self._messages is not None:
            # all producers share the tokens: a claim beside the entry must not take them all
            messages = messages_in(message.entry, message.num_messages)
            wait = self._messages.take(messages, now)
        if self._bytes is not None:
            wait = max(wait, self._bytes.take(len(message.entry), now))
        if wait > 0:
            session = producer.connection.session
            if isinstance(session, Throttled):
                self.times += 1
                session.throttle(wait)
