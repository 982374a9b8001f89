"""One fault: which frames it meets, how often, and what then happens to them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Protocol

from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode
from magnetar.testing.kit.frame_cutter import command_of, number_of


class OpenNames(Protocol):
    """What a connection knows of its producers and consumers."""

    def producer(self, producer_id: int) -> str | None:
        """Return its topic."""
        ...

    def consumer(self, consumer_id: int) -> tuple[str, str] | None:
        """Return its topic and subscription."""
        ...


class Deed(Enum):
    """What is done to a frame."""

    DROP = "drop"
    CUT = "cut"
    DELAY = "delay"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Which frames a fault is for; what is None is not looked at."""

    number: int
    topic: str | None = None
    """In full; a partitioned one stands for its partitions."""
    subscription: str | None = None

    def meets(self, frame: bytes, handles: OpenNames) -> bool:
        """Whether it is one of them."""
        if number_of(frame) != self.number:
            return False
        if self.topic is None and self.subscription is None:
            return True
        topic, subscription = _place(command_of(frame), handles)
        return (self.topic is None or _same(topic, self.topic)) and (
            self.subscription is None or subscription == self.subscription
        )


class Fault:
    """A fault that was switched on; as a context manager it ends with its block.

    ``hits`` counts the frames that it met. It is over after so many of them (``times``), or with :meth:`stop`.
    """

    def __init__(
        self,
        deed: Deed,
        aim: Aim,
        rng: random.Random,
        *,
        times: int | None = None,
        chance: float = 1.0,
        seconds: float = 0.0,
        error: ServerError = ServerError.UnknownError,
        message: str = "",
    ) -> None:
        self.deed = deed
        self.aim = aim
        self.seconds = seconds
        self.hits = 0
        self._rng = rng
        self._left = times
        self._chance = chance
        self._error = error
        self._message = message

    @property
    def over(self) -> bool:
        """Whether it does nothing any more."""
        return self._left == 0

    def stop(self) -> None:
        """End it. Repeatable."""
        self._left = 0

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def strikes(self, frame: bytes, handles: OpenNames) -> bool:
        """Whether it happens to this frame; counts it."""
        if self.over or not self.aim.meets(frame, handles):
            return False
        if self._chance < 1.0 and self._rng.random() >= self._chance:
            return False
        if self.deed is Deed.REFUSE and self.answer(frame) is None:
            return False
        self.hits += 1
        if self._left is not None:
            self._left -= 1
        return True

    def answer(self, frame: bytes) -> bytes | None:
        """Return the refusal of a request; None if it asks for no answer."""
        command = command_of(frame)
        return None if command is None else refusal(command, self._error, self._message)

    def __repr__(self) -> str:
        return f"<Fault {self.deed.value} {self.aim}: {self.hits} hits, {'over' if self.over else 'on'}>"


def refusal(command: c.Command, error: ServerError, message: str) -> bytes | None:
    """Return the answer by which a broker refuses a command; None if it has none."""
    if isinstance(command, c.CommandSend):
        return encode(c.CommandSendError(command.producer_id, command.sequence_id, error, message))
    if isinstance(command, c.CommandConnect):
        return encode(c.CommandError(-1, error, message))
    request_id: int | None = getattr(command, "request_id", None)
    if request_id is None:
        return None
    if isinstance(command, c.CommandAck):
        return encode(c.CommandAckResponse(command.consumer_id, None, error, message, request_id))
    if isinstance(command, c.CommandLookupTopic):
        failed = c.LookupType.Failed
        return encode(c.CommandLookupTopicResponse(request_id, failed, error=error, message=message))
    if isinstance(command, c.CommandPartitionedTopicMetadata):
        return encode(
            c.CommandPartitionedTopicMetadataResponse(request_id, c.MetadataType.Failed, error=error, message=message)
        )
    response = getattr(c, f"{type(command).__name__}Response", None) or c.CommandError
    if "error" not in response.__dataclass_fields__:
        response = c.CommandError
    return encode(response(request_id=request_id, error=error, message=message))


def _place(command: c.Command | None, handles: OpenNames) -> tuple[str | None, str | None]:
    topic: str | None = getattr(command, "topic", None)
    if topic is not None:
        return TopicName.parse(topic).fqn, getattr(command, "subscription", None)
    consumer_id: int | None = getattr(command, "consumer_id", None)
    if consumer_id is not None:
        return handles.consumer(consumer_id) or (None, None)
    producer_id: int | None = getattr(command, "producer_id", None)
    return (None if producer_id is None else handles.producer(producer_id)), None


def _same(topic: str | None, wanted: str) -> bool:
    return topic is not None and (topic == wanted or TopicName.parse(topic).parent.fqn == wanted)
