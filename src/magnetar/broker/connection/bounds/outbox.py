"""Bytes that wait for one socket: all that is put in during one turn of the loop leaves in one write, after it or, when
all sockets together were given much, a turn or more later.

High water is reported both from here (what waits in this turn) and from the transport (what the socket did not take);
``writable`` is what the dispatchers look at before they give a consumer more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from magnetar.broker.connection.bounds.unsent_bytes import LITTLE, ONE_MAX, Taker, UnsentBytes

_JOIN_BELOW: Final = 4096
"""Parts smaller than this on average are copied into one buffer; larger ones are handed over one by one."""


class Outbox:
    """One per connection. ``parts`` is public for callers that append many pieces; they call :meth:`grew`
    afterwards."""

    __slots__ = (
        "_all", "_high", "_loop", "_on_writable", "_paused", "_scheduled", "_taker", "_transport", "closed", "parts",
        "size", "total", "writes",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        on_writable: Callable[[], None],
        high: int,
        unsent: UnsentBytes,
        taker: Taker,
    ) -> None:
        """``high``: bytes above which nothing more is put in; ``unsent``: those of all connections."""
        self._loop = loop
        self._high = high
        self._all = unsent
        self._taker: Taker | None = taker
        self._transport = transport
        self._on_writable = on_writable
        self._scheduled = False
        self._paused = False
        self.parts: list[bytes] = []
        self.size = 0
        self.total = 0
        """Bytes that were ever handed over to be sent."""
        self.writes = 0
        self.closed = False

    @property
    def writable(self) -> bool:
        """Whether more should be put in now."""
        return not self._paused and self.size < self._high and (not self._all.short or self._may_have_more())

    def _may_have_more(self) -> bool:
        """All connections together hold too much: only one that holds little may have more."""
        if self.unsent + self.size <= LITTLE or self._taker is None:
            return True
        self._all.denied(self._taker)
        return False

    @property
    def unsent(self) -> int:
        """Bytes handed over that the socket has not taken yet."""
        return self._transport.get_write_buffer_size()

    def put(self, data: bytes) -> None:
        """Append one frame."""
        self.parts.append(data)
        self.size += len(data)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def grew(self, size: int) -> None:
        """``size`` bytes were appended to ``parts`` directly."""
        self.size += size
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if self._all.turn_left > 0:
            self.flush()
        else:
            self._all.later(self.flush)

    def flush(self) -> None:
        """Hand everything to the socket."""
        self._scheduled = False
        parts, size = self.parts, self.size
        if not parts:
            return
        self.parts = []
        self.size = 0
        if self.closed:
            return
        self.writes += 1
        self.total += size
        self._all.written(size)
        if self._paused and self._taker is not None and (unsent := self.unsent) > ONE_MAX:
            self._taker.takes_too_much(unsent)
            return
        if size < _JOIN_BELOW * len(parts):
            self._transport.write(b"".join(parts))
        else:
            self._transport.writelines(parts)
        if size >= self._high and not self._paused:
            self._loop.call_soon(self._on_writable)

    def end(self) -> None:
        """The connection is lost: drop every reference to it, so that no cycle is left for the garbage collector."""
        self.closed = True
        self._paused = True  # its consumers get nothing more while they wait for their turn to leave
        self.parts = []
        self.size = 0
        self._on_writable = _nothing
        if self._taker is not None:
            self._all.forget(self._taker)
            self._taker = None

    def pause(self) -> None:
        """The transport's buffer is full."""
        self._paused = True

    def resume(self) -> None:
        """The transport's buffer has drained."""
        self._paused = False
        self._on_writable()


def _nothing() -> None: ...
