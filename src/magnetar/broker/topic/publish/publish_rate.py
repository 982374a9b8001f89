"""How fast clients may publish to one topic: its own rate, its resource group's and the broker's (rule 14.6).

What has arrived is taken, never refused. When that used a limit up, its connection stands in the line of that limit:
it handles no further command and is not read until it is called. So every producer of that connection waits, as with
Apache Pulsar. A topic without a limit has no object of this kind, and its producers keep their way in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from magnetar.broker.throttling.rate_limit import RateLimit
from magnetar.broker.topic.publish.producer import Producer, Publish
from magnetar.protocol.commands import CommandSend
from magnetar.protocol.entries import messages_in


@runtime_checkable
class Throttled(Protocol):
    """A connection that can be made to wait."""

    def throttle(self, limits: tuple[RateLimit, ...]) -> None:
        """Take nothing from the client until all of these have room."""
        ...


class HeldConnection:
    """A connection that waits until each of some limits has room; stands in one line at a time."""

    __slots__ = ("_go_on", "_limits", "_waits_for")

    def __init__(self, limits: tuple[RateLimit, ...], go_on: Callable[[], None]) -> None:
        self._limits = limits
        self._go_on = go_on
        self._waits_for: RateLimit | None = None

    def wait(self) -> bool:
        """Join the line of the limit that takes longest; returns False if all have room."""
        short = [limit for limit in self._limits if limit.room() is None]
        if not short:
            return False
        self._waits_for = max(short, key=RateLimit.wait_s)
        self._waits_for.wait(self)
        return True

    def leave(self) -> None:
        """The connection is lost."""
        if self._waits_for is not None:
            self._waits_for.leave(self)
            self._waits_for = None

    def wake(self) -> bool:
        """A limit has room: what the client sends next is charged when it comes."""
        self._waits_for = None
        if self.wait():
            return False
        self._go_on()
        return True


class PublishLimit:
    """The limits of one topic, from the narrowest to the widest."""

    def __init__(self, limits: tuple[RateLimit, ...]) -> None:
        self.limits = limits
        self.times = 0
        """How often a connection was made to wait."""

    def way_in(self, producer: Producer, publish: Publish) -> Publish:
        """What that producer is to publish with."""
        return partial(self._publish, producer, publish)

    def _publish(self, producer: Producer, publish: Publish, message: CommandSend) -> None:
        publish(message)
        # all producers share the tokens: a claim beside the entry must not take them all
        messages, size = messages_in(message.entry, message.num_messages), len(message.entry)
        used_up = False
        for limit in self.limits:
            used_up |= limit.charge(messages, size)
        if used_up:
            session = producer.connection.session
            if isinstance(session, Throttled):
                self.times += 1
                session.throttle(self.limits)
