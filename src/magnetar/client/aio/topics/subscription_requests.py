"""What one consumer asks its broker and waits for, and what is asked again when the connection is lost meanwhile.

What may be asked twice (the end of the topic, a schema, a seek) waits for the consumer to be open again, and is asked
anew there, up to one deadline for all attempts. What may not (`unsubscribe`, acknowledgements in a transaction) fails
at once while the consumer is not open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from magnetar.client.aio.connections.attachment import Attachment
from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.errors import ConnectionLostError
from magnetar.protocol import commands as c

Answer = TypeVar("Answer")


class SubscriptionRequests:
    """The requests of one consumer on one topic or partition."""

    def __init__(self, topic: str, subscription: str, attachment: Attachment, timeout: float) -> None:
        """``timeout``: seconds that an operation may take, with all its attempts."""
        self.consumer_id = -1
        """The consumer's id on the connection where it is open."""
        self.failure: Exception | None = None
        """Why nothing is asked any more."""
        self._topic, self._subscription = topic, subscription
        self._attachment, self._timeout = attachment, timeout
        self._loop = asyncio.get_running_loop()

    def deadline(self) -> float:
        """Return when an operation that begins now has to be over, of the loop's time."""
        return self._loop.time() + self._timeout

    def connection(self) -> WireConnection:
        """Return the connection it is subscribed on. Raises ConnectionLostError, and why it failed."""
        self._check()
        connection = self._attachment.connection
        if connection is None:
            raise ConnectionLostError(f"{self._topic} is not connected at the moment{self._attachment.why}; try again")
        return connection

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def patiently(
        self,
        what: str,
        attempt: Callable[[WireConnection, float], Awaitable[Answer]],
        deadline: float | None = None,
    ) -> Answer:
        """Return what ``attempt`` returns, which is given the connection and the deadline, as `Attachment.ask`."""

        async def checked(connection: WireConnection, until: float) -> Answer:
            self._check()
            return await attempt(connection, until)

        self._check()
        until = self.deadline() if deadline is None else deadline
        return await self._attachment.ask(what, until, checked)

    async def last_message_id(self, deadline: float | None = None) -> c.CommandGetLastMessageIdResponse:
        """Return what the broker says about the end of the topic; the deadline is the operation's time-out if None."""
        what = f"ask for the last message of {self._topic}"

        async def ask(connection: WireConnection, until: float) -> c.CommandGetLastMessageIdResponse:
            command = c.CommandGetLastMessageId(self.consumer_id, connection.new_request_id())
            return await connection.request(command, c.CommandGetLastMessageIdResponse, what, deadline=until)

        return await self.patiently(what, ask, deadline)

    async def acknowledge(self, ids: tuple[c.MessageIdData, ...], kind: c.AckType, txn: c.TxnId) -> None:
        """Acknowledge in a transaction. Raises RefusedError, ConnectionLostError."""
        connection = self.connection()
        ack = c.CommandAck(self.consumer_id, kind, ids, None, (), txn, connection.new_request_id())
        what = f"acknowledge on {self._topic} in a transaction"
        answer = await connection.request(ack, c.CommandAckResponse, what)
        if answer.error is not None:
            raise connection.refused(what, answer.error, answer.message)

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription, and with it the consumer. Raises RefusedError, ConnectionLostError."""
        connection = self.connection()
        command = c.CommandUnsubscribe(self.consumer_id, connection.new_request_id(), force)
        await connection.request(command, c.CommandSuccess, f"unsubscribe {self._subscription} on {self._topic}")
        connection.consumers.pop(self.consumer_id, None)
