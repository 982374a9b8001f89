"""Answers to acknowledgements, where applications wait for them: one future for all that are written together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.errors import AlreadyClosedError, RefusedError
from magnetar.protocol import commands as c


class AckReceipts:
    """The answers of one consumer on one topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Future[None] | None = None
        """For what was acknowledged and is not written yet; None if no task waits."""
        self._tasks: set[asyncio.Task[None]] = set()

    def stored(self) -> asyncio.Future[None]:
        """Return what is done when the broker has stored what was acknowledged in this turn of the loop.

        It raises RefusedError, ClientTimeoutError, and ConnectionLostError if it is not known whether it was.
        """
        if self._next is None:
            self._next = self._loop.create_future()
            self._next.add_done_callback(_noticed)
        found = asyncio.shield(self._next)
        found.add_done_callback(_noticed)
        return found

    def asked(self, connection: WireConnection, commands: Sequence[c.Command]) -> list[c.Command]:
        """Ask for answers to the acknowledgements among the commands, which are written; returns the others."""
        waiting = self._next
        if waiting is None:
            return list(commands)
        acks = [one for one in commands if isinstance(one, c.CommandAck) and one.validation_error is None]
        if not acks:
            return list(commands)
        self._next = None
        asked = [one._replace(request_id=connection.new_request_id()) for one in acks]
        answers = [(one, connection.ask(one)) for one in asked]
        task = self._loop.create_task(self._answered(connection, answers, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return [one for one in commands if one not in acks]

    async def _answered(
        self,
        connection: WireConnection,
        answers: list[tuple[c.CommandAck, asyncio.Future[c.Command]]],
        waiting: asyncio.Future[None],
    ) -> None:
        what = f"acknowledge on {self._topic}"
        try:
            for asked, answered in answers:
                answer = await connection.answer(asked, answered, c.CommandAckResponse, what)
                if answer.error is not None:
                    raise RefusedError(what, answer.error, answer.message)
        except Exception as error:
            waiting.set_exception(error)
        else:
            waiting.set_result(None)

    async def close(self) -> None:
        """Wait for the answers that are on their way; what was not written fails."""
        if self._next is not None:
            self._next.set_exception(AlreadyClosedError(f"{self._topic}: closed before it was acknowledged"))
        if self._tasks:
            await asyncio.wait(self._tasks)


def _noticed(done: asyncio.Future[None]) -> None:
    """Take the error of what may not be awaited any more."""
    if not done.cancelled():
        done.exception()
