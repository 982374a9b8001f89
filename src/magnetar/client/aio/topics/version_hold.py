"""Entries that wait until the definition of the schema they were written with is here.

While one waits, all that follow it do: messages keep their order. The broker's permits bound how many there are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.client.values.written_schema import SchemaReading
from magnetar.model.errors import InvalidValueError, ProtocolError
from magnetar.protocol.commands import CommandMessage
from magnetar.protocol.entries import metadata_of


class VersionHold:
    """One topic's entries whose versions are asked for."""

    def __init__(
        self, topic: str, reading: SchemaReading, lookup: TopicLookup, deliver: Callable[[CommandMessage], None]
    ) -> None:
        """``deliver`` takes an entry in whose version is known."""
        self._topic = topic
        self._reading = reading
        self._lookup = lookup
        self._deliver = deliver
        self._waiting: deque[CommandMessage] = deque()
        self._task: asyncio.Task[None] | None = None

    def takes(self, message: CommandMessage) -> bool:
        """Whether an entry has to wait; it comes to ``deliver`` later then."""
        if not self._waiting and self._reading.knows(_version_of(message)):
            return False
        self._waiting.append(message)
        if self._task is None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._ask(), name=f"schema versions of {self._topic}")
        return True

    @property
    def waiting(self) -> int:
        """How many entries wait."""
        return len(self._waiting)

    def withdraw(self) -> list[CommandMessage]:
        """Return the entries that wait, and forget them."""
        found = list(self._waiting)
        self.clear()
        return found

    def clear(self) -> None:
        """Forget the entries, which come again."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _ask(self) -> None:
        passing: set[bytes] = set()
        while self._waiting:
            version = _version_of(self._waiting[0])
            if version is not None and not self._reading.knows(version):
                try:
                    self._reading.learn(version, await self._lookup.schema_of_version(self._topic, version))
                except InvalidValueError as error:
                    self._reading.learn(version, error)
                except Exception as error:  # whatever it is, the messages come, and their values say it
                    self._reading.learn(version, error)
                    passing.add(version)
            self._deliver(self._waiting.popleft())
        for version in passing:
            self._reading.forget(version)
        self._task = None


def _version_of(message: CommandMessage) -> bytes | None:
    try:
        return metadata_of(message.entry).schema_version
    except ProtocolError:
        return None  # what is damaged is noted by who unpacks it
