"""The producers of a retry letter or dead letter topic: opened when the first message needs one, once, and anew after
one failed (rules 6.5.5 and 6.5.7).

A copy has the bytes of its original, so it is published with the schema that these were written with, as Java's client
does: one producer for each, of those schemas that came last.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain, count
from typing import Any, Final, NamedTuple, Protocol

from magnetar.client.aio.topics.receipt import Receipt
from magnetar.client.errors import AlreadyClosedError, RefusedError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.protocol import commands as c

_LOG: Final = logging.getLogger(__name__)
PAUSE_MIN: Final = 0.1
PAUSE_MAX: Final = 60.0
"""Seconds until a producer that could not be opened, or that failed, is tried again."""
PRODUCERS_MAX: Final = 16
"""Producers of one topic; that which was not used for longest makes room for another."""


class LetterOutlet(Protocol):
    """What letters are published with: a producer."""

    async def enqueue(self, message: OutgoingMessage) -> Receipt:
        """Add a message, waiting for room."""
        ...

    async def close(self) -> None:
        """Send what it has, and close."""
        ...


class LetterAddress(NamedTuple):
    """A topic for letters, and the producer that publishes them there."""

    topic: str
    producer_name: str | None = None
    initial_subscription: str | None = None
    schema: c.Schema | None = None
    parameters: Mapping[str, Any] = {}
    """Others of `Client.create_producer`."""


OpenOutlet = Callable[[LetterAddress], Awaitable[LetterOutlet]]
SchemaOfVersion = Callable[[str, bytes], Awaitable[SchemaDefinition]]
"""Returns what a topic's version is. Raises InvalidValueError if the registry has it no more."""


def pause_after(failures: int) -> float:
    """Return how many seconds to wait after so many failures in a row."""
    return min(PAUSE_MIN * 2.0 ** min(failures - 1, 20), PAUSE_MAX)


class LetterProducer:
    """One topic's producer of letters."""

    def __init__(self, open_outlet: OpenOutlet, address: LetterAddress) -> None:
        self._open_outlet = open_outlet
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._outlet: LetterOutlet | None = None
        self._opening: asyncio.Task[LetterOutlet] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._not_before = 0.0
        self._error: Exception | None = None
        self._closed = False

    @property
    def producer_name(self) -> str | None:
        """How the broker knows it; ``None`` if the broker is to choose."""
        return self._address.producer_name

    async def post(self, letter: OutgoingMessage) -> Receipt:
        """Publish; the receipt gets the id of the copy. Raises why it cannot be opened, or what `Producer.enqueue`
        raises; cancelled meanwhile, nothing is published."""
        outlet = self._outlet or await self._opened()
        try:
            receipt = await outlet.enqueue(letter)
        except Exception as error:
            self._judge(outlet, error)
            raise
        receipt.add_done_callback(lambda done: self._on_receipt(outlet, done))
        return receipt

    async def _opened(self) -> LetterOutlet:
        if self._closed:
            raise AlreadyClosedError(f"{self._address.topic}: the consumer is closed")
        if self._opening is None:
            if self._error is not None and self._loop.time() < self._not_before:
                raise self._error
            self._opening = self._loop.create_task(self._open(), name=f"open {self._address.topic}")
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._opening)

    async def _open(self) -> LetterOutlet:
        try:
            outlet = await self._make()
        except Exception as error:
            self._failed(error)
            raise
        finally:
            self._opening = None
        if self._closed:
            await outlet.close()
            raise AlreadyClosedError(f"{self._address.topic}: the consumer is closed")
        self._outlet = outlet
        return outlet

    async def _make(self) -> LetterOutlet:
        try:
            return await self._open_outlet(self._address)
        except RefusedError as error:
            if error.code is not ServerError.IncompatibleSchema or self._address.schema is None:
                raise
        # Bytes are copied as they are, whatever their schema: a letter that is refused for it would come for ever.
        _LOG.warning("%s takes another schema than the consumer has; letters go without one", self._address.topic)
        self._address = self._address._replace(schema=None)
        return await self._open_outlet(self._address)

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._error = error
        self._not_before = self._loop.time() + pause_after(self._failures)

    def _on_receipt(self, outlet: LetterOutlet, done: asyncio.Future[MessageId]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self._failures = 0
        elif isinstance(error, Exception):
            self._judge(outlet, error)

    def _judge(self, outlet: LetterOutlet, error: Exception) -> None:
        """Give a producer up that will never publish again."""
        if not isinstance(error, RefusedError | AlreadyClosedError) or self._outlet is not outlet or self._closed:
            return
        self._outlet = None
        self._failed(error)
        closing = self._loop.create_task(_closed(outlet))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Send what it has, and close."""
        self._closed = True
        opening, outlet, self._outlet = self._opening, self._outlet, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait([opening])
        if outlet is not None:
            await outlet.close()
        if self._closing:
            await asyncio.wait(self._closing)


async def _closed(outlet: LetterOutlet | LetterProducer) -> None:
    try:
        await outlet.close()
    except Exception as error:
        _LOG.info("a producer of letters could not be closed: %s", error)


class LetterProducers:
    """One topic's producers of letters: one for each schema that originals were written with, a few at a time."""

    def __init__(self, open_outlet: OpenOutlet, address: LetterAddress, schema_of: SchemaOfVersion) -> None:
        self._open_outlet = open_outlet
        self._address = address
        self._schema_of = schema_of
        self._producers: dict[c.Schema | None, LetterProducer] = {}
        """That which was used last is the last."""
        self._in_use = Counter[LetterProducer]()
        """Which a letter is being given to, by how many callers."""
        self._leaving: dict[LetterProducer, asyncio.Task[None]] = {}
        """Others that are being closed."""
        self._closed = False

    async def post(self, letter: OutgoingMessage, original: Message[Any]) -> Receipt:
        """Publish the copy of ``original``. Raises as `LetterProducer.post`, and why its schema is not known."""
        schema = await self._written_with(original)
        if self._closed:
            raise AlreadyClosedError(f"{self._address.topic}: the consumer is closed")
        producer = self._producers.pop(schema, None)
        if producer is None:
            address = self._address._replace(schema=schema, producer_name=self._name())
            producer = LetterProducer(self._open_outlet, address)
        self._producers[schema] = producer
        self._in_use[producer] += 1
        try:
            await self._close_others()
            return await producer.post(letter)
        finally:
            self._in_use[producer] -= 1
            self._in_use += Counter()  # without those that are not in use any more

    async def _close_others(self) -> None:
        """Close what was not used for longest, if there are too many, so that names and room at the broker are free."""
        idle = [schema for schema, one in self._producers.items() if one not in self._in_use]
        for schema in idle[: max(len(self._producers) - PRODUCERS_MAX, 0)]:
            producer = self._producers.pop(schema)
            closing = self._leaving[producer] = asyncio.get_running_loop().create_task(_closed(producer))
            closing.add_done_callback(lambda _, one=producer: self._leaving.pop(one))  # type: ignore[misc]  # its default is not inferred
        if self._leaving:
            await asyncio.wait(list(self._leaving.values()))

    def _name(self) -> str | None:
        """Return the name of another producer, which no two of one topic share; it ends as the first one's does."""
        name = self._address.producer_name
        if name is None:
            return None
        stem, _, end = name.rpartition("-")
        taken = {one.producer_name for one in (*self._producers.values(), *self._leaving)}
        names = chain([name], (f"{stem}-{number}-{end}" for number in count(1)))
        return next(one for one in names if one not in taken)

    async def _written_with(self, original: Message[Any]) -> c.Schema | None:
        own = self._address.schema
        if own is None:
            return None  # a consumer of bytes
        version = original.schema_version()
        if not version:
            return None if own.type is SchemaType.AUTO_CONSUME else own
        try:
            found = await self._schema_of(original.topic_name(), version)
        except InvalidValueError:  # it was deleted, and no schema that is left says what these bytes are
            return None
        if (found.type, found.data) == (own.type, own.schema_data):
            return own
        return c.Schema(own.name, found.data, found.type, tuple(found.properties.items()))

    async def close(self) -> None:
        """Send what they have, and close."""
        self._closed = True
        leaving = self._leaving.values()
        await asyncio.gather(*(one.close() for one in self._producers.values()), *leaving, return_exceptions=True)
