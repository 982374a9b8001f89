"""The last value of each key of a topic, kept up to date (rule 6.9.6).

A view with crypto_failure_action FAIL fails at a message that no key opens; with DISCARD it goes on without that.

A reader of the compacted topic, from its earliest message on and over all partitions, feeds a dictionary. A message
without a value, or with an empty one, takes its key out; one without a key changes nothing. Everything happens on the
event loop between two awaits, so a look at the view sees one moment of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from magnetar.client.aio.consumers.reader import Reader
from magnetar.client.aio.parameters import checked
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError
from magnetar.client.machines.message import Message

_LOG: Final = logging.getLogger(__name__)
_TURN: Final = 1_000
"""Messages that are applied before others on the event loop have a turn."""

Action = Callable[[str, Any], object]
"""What is called with a key and its value; a key that was taken out comes with the empty value it was sent with, with
None if that is no value of the schema."""


class TableView(Mapping[str, Any]):
    """A view; make it with `Client.create_table_view`, and use it as an asynchronous context manager.

    It is a mapping of keys to values: ``view["key"]``, ``in``, ``len``, ``get``, ``keys``, ``values``, ``items``.
    After `close` everything raises AlreadyClosedError, and once its topic can be read no more, why.
    """

    def __init__(self, reader: Reader, timeout: float) -> None:
        self._reader = reader
        self._timeout = timeout
        self._table: dict[str, Any] = {}
        self._listeners: list[Action] = []
        self._failure: Exception | None = None
        self._advanced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def at_close(self) -> list[Callable[[], object]]:
        """What is called when it is closed, by itself or with its client."""
        return self._reader.consumer.at_close

    async def opened(self) -> None:
        """Read what is stored; then go on in the background. Raises as `Reader.read_next`."""
        read = 0
        self._reader.consumer.refuse_sealed()
        while await self._reader.has_message_available():
            self._apply(await self._reader.read_next())
            read += 1
            if read % _TURN == 0:
                await asyncio.sleep(0)
        self._task = asyncio.get_running_loop().create_task(self._follow(), name=f"table view of {self.topic()}")

    async def _follow(self) -> None:
        applied = 0
        try:
            while True:
                self._apply(await self._reader.read_next())
                self._advanced.set()
                applied += 1
                if applied % _TURN == 0:
                    await asyncio.sleep(0)
        except Exception as error:
            self._failure = error
            if not isinstance(error, AlreadyClosedError):
                _LOG.error("the table view of %s ends: %s", self.topic(), error)
        finally:
            self._advanced.set()

    def _apply(self, message: Message) -> None:
        if not message.has_key():
            return
        key, gone = message.partition_key(), message.has_null_value() or not message.data()
        try:
            value = b"" if gone and message.value() == b"" else None if gone else message.value()
        except Exception as error:  # what a schema raises about a stranger's bytes must not end the view
            value = None
            if not gone:
                _LOG.error("the table view of %s leaves %s out: %s", self.topic(), message.message_id(), error)
                return
        if gone:
            self._table.pop(key, None)
        else:
            self._table[key] = value
        for listener in self._listeners:
            try:
                listener(key, value)
            except Exception:
                _LOG.exception("a listener of the table view of %s failed", self.topic())

    async def __aenter__(self) -> TableView:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def topic(self) -> str:
        """Return the topic, without a partition."""
        return self._reader.topic()

    def is_connected(self) -> bool:
        """Whether all partitions are read at the moment."""
        return self._failure is None and self._reader.is_connected()

    def _now(self) -> dict[str, Any]:
        if self._failure is not None:
            raise self._failure
        return self._table

    @override
    def __getitem__(self, key: str) -> Any:
        return self._now()[key]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    @override
    def __len__(self) -> int:
        return len(self._now())

    def __hash__(self) -> int:
        return id(self)

    @override
    def __eq__(self, other: object) -> bool:
        return self is other

    def snapshot(self) -> dict[str, Any]:
        """Return a copy, which does not change any more."""
        return dict(self._now())

    def for_each(self, callback: Action) -> None:
        """Call a function with each key and its value; what it raises is raised here."""
        checked("listen", callback=callback)
        for key, value in self.snapshot().items():
            callback(key, value)

    def listen(self, callback: Action) -> None:
        """Call a function with each change from now on; what it raises is logged."""
        checked("listen", callback=callback)
        self._now()
        self._listeners.append(callback)

    def unlisten(self, callback: Action) -> None:
        """Call a function with no further change."""
        self._listeners.remove(callback)

    def for_each_and_listen(self, callback: Action) -> None:
        """Call a function with each key and its value, then with each change; none is left out in between."""
        self.for_each(callback)
        self.listen(callback)

    async def refresh(self) -> None:
        """Wait until the view has everything that is stored by now. Raises ClientTimeoutError after the operation's
        time-out, and why the topic can be read no more."""
        self._now()
        wanted = await self._reader.get_last_message_ids()
        try:
            async with asyncio.timeout(self._timeout):
                while not all(self._reader.has_read(one) for one in wanted):
                    self._advanced.clear()
                    self._reader.consumer.when_messages = self._advanced.set  # they may be none that are delivered
                    await self._advanced.wait()
                    self._now()
        except TimeoutError:
            raise ClientTimeoutError(
                f"the table view of {self.topic()} has not caught up in {self._timeout:g} s; is the broker away?"
            ) from None

    async def close(self) -> None:
        """Close; the broker forgets it. Closing twice is no error (rule 6.1.7)."""
        if self._task is not None:
            self._task.cancel()
        if not isinstance(self._failure, AlreadyClosedError):
            self._failure = AlreadyClosedError(f"{self.topic()}: the table view is closed")
        self._advanced.set()
        await self._reader.close()

    def __repr__(self) -> str:
        return f"TableView(topic={self.topic()}, {len(self._table)} keys)"
