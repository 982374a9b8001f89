"""One socket to one broker, shared by all producers and consumers of a client.

Handles (producers and consumers) are registered by their ids and get what the broker sends them. Requests are futures.
A broker that is silent for two keep-alive intervals is taken for lost; in between it is asked with PING. While the
socket takes no more, `writable` is false, and handles keep what they have until `on_writable`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol, TypeVar, cast

from typing_extensions import override

from magnetar.client.address import Address
from magnetar.client.advice import advice
from magnetar.client.errors import ClientError, ClientTimeoutError, ConnectionLostError, ForkedClientError, RefusedError
from magnetar.client.handshake import (
    MAX_FRAME_SIZE,
    auth_response,
    broken,
    connect_command,
    no_pulsar,
    says_expired,
)
from magnetar.model.errors import ProtocolError, ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.client import ClientConnection
from magnetar.protocol.commands.names import name_of
from magnetar.runtime.event import Event
from magnetar.security.asker_words import TOOL_WORDS, AskerWords
from magnetar.security.credentials.method import ClientCredentials
from magnetar.security.credentials.secret import CredentialsDelayedError, CredentialsError

Answer = TypeVar("Answer")

KEEP_ALIVE: Final = 30.0
"""Seconds, as all clients of Pulsar have it."""
_HIGH_WATER: Final = 1 << 20


class ProducerHandle(Protocol):
    """What a connection asks of a producer."""

    def on_receipt(self, receipt: c.CommandSendReceipt) -> None: ...
    def on_send_error(self, error: c.CommandSendError) -> None: ...
    def on_lost(self, error: Exception) -> None: ...
    def on_writable(self) -> None: ...


class ConsumerHandle(Protocol):
    """What a connection asks of a consumer."""

    def on_message(self, message: c.CommandMessage) -> None: ...
    def on_active(self, active: bool) -> None: ...
    def on_end_of_topic(self) -> None: ...
    def on_lost(self, error: Exception) -> None: ...


class WireConnection(asyncio.Protocol):
    """One connection; `greet` before anything else."""

    def __init__(
        self,
        address: Address,
        credentials: ClientCredentials,
        timeout: float,
        keep_alive: float = KEEP_ALIVE,
        words: AskerWords = TOOL_WORDS,
    ) -> None:
        """``keep_alive``: seconds of silence after which the broker is asked for a sign."""
        self.address = address
        self.max_message_size = 5 * 1024 * 1024
        self.lost: Exception | None = None
        self.writable = True
        self.producers: dict[int, ProducerHandle] = {}
        self.consumers: dict[int, ConsumerHandle] = {}
        self._loop = asyncio.get_running_loop()
        self._credentials = credentials
        self._words = words
        self._timeout = timeout
        self._patience = keep_alive
        self._state = ClientConnection(MAX_FRAME_SIZE)
        self._transport: asyncio.Transport | None = None
        self._answers: dict[int, asyncio.Future[c.Command]] = {}
        self._greeted: asyncio.Future[None] = self._loop.create_future()
        self._gone = Event()
        self._heard = self._asked = False
        """Whether the broker has said anything since it was looked last, and whether it was asked for a sign then."""
        self._pinger: asyncio.TimerHandle | None = None
        self._shown: bytes | None = None
        self._next_handle = 0
        self._showing: asyncio.Task[None] | None = None

    async def greet(self, proxy_to: str | None, patience: float) -> None:
        """Send CONNECT and await CONNECTED, for so many seconds.

        Raises ConnectionLostError, RefusedError, ClientTimeoutError naming what was silent.
        """
        began = self._loop.time()
        bound = asyncio.timeout_at(began + patience)
        try:
            async with bound:
                self._shown = await self._credential_data(None)
        except TimeoutError:
            if not bound.expired():
                raise  # of the function that gives the credentials
            raise ClientTimeoutError(
                f"no login to the broker at {self.address} in {_seconds(patience)} s: {self._credentials} has not "
                "come; is its source away?"
            ) from None
        self.send(connect_command(self._credentials.method, self._shown, proxy_to))
        try:
            async with asyncio.timeout_at(began + patience):
                await asyncio.shield(self._greeted)
        except TimeoutError:
            raise ClientTimeoutError(
                f"the broker at {self.address} did not answer CONNECT in {_seconds(patience)} s"
            ) from None
        self._pinger = self._loop.call_later(self._patience, self._keep_alive)

    async def _credential_data(self, stale: bytes | None) -> bytes | None:
        if self._credentials.method is None:
            return None
        return await self._loop.run_in_executor(None, self._credentials.data, stale)

    def new_request_id(self) -> int:
        """Return an id for the request that is sent next."""
        return self._state.new_request_id()

    def new_handle(self) -> int:
        """Return a new producer or consumer id of this connection."""
        self._next_handle += 1
        return self._next_handle - 1

    async def request(
        self,
        command: Any,
        expected: type[Answer],
        what: str,
        *,
        patient: bool = False,
        deadline: float | None = None,
    ) -> Answer:
        """Send, await the answer; ``what`` names the request in errors.

        ``patient``: once the broker has said that it will answer later (rule 3.2.4), no time is too long. ``deadline``:
        when it must have answered, of the loop's time; by default after the time-out of the operation.
        """
        return await self.answer(command, self.ask(command), expected, what, patient=patient, deadline=deadline)

    def ask(self, command: Any) -> asyncio.Future[c.Command]:
        """Send a request now; what is returned is for `answer`. Raises ConnectionLostError."""
        answered: asyncio.Future[c.Command] = self._loop.create_future()
        self.send(command)
        self._answers[command.request_id] = answered
        return answered

    async def answer(
        self,
        command: Any,
        answered: asyncio.Future[c.Command],
        expected: type[Answer],
        what: str,
        *,
        patient: bool = False,
        deadline: float | None = None,
    ) -> Answer:
        """Await the answer to a request that was sent with `ask`, as `request` does."""
        request_id: int = command.request_id
        began = self._loop.time()
        until = began + self._timeout if deadline is None else deadline
        try:
            async with asyncio.timeout_at(until) as bound:
                answer = await answered
                while isinstance(answer, c.CommandProducerSuccess) and not answer.producer_ready:
                    self._answers[request_id] = answered = self._loop.create_future()
                    if patient:
                        bound.reschedule(None)
                    answer = await answered
        except TimeoutError:
            raise ClientTimeoutError(
                f"{what}: the broker at {self.address} did not answer in {_seconds(until - began)} s"
            ) from None
        finally:
            if self._answers.pop(request_id, None) is not None:
                self._state.forget(request_id)
        if isinstance(answer, c.CommandError):
            raise self.refused(what, answer.error, answer.message, command)
        if not isinstance(answer, expected):
            raise ClientError(f"{what}: the broker answered with {name_of(type(answer))}")
        return answer

    def refused(
        self, what: str, error: ServerError, message: str | None, asked: c.Command | None = None
    ) -> RefusedError:
        """Return the error to raise about a refusal."""
        step = advice(error, asked, self._credentials, self._words)
        return RefusedError(what, error, message, step, str(self.address))

    def send(self, command: c.Command) -> None:
        """Send a command. Raises ConnectionLostError."""
        self.write(self._state.send(command))

    def write(self, data: bytes) -> None:
        """Send prepared frames. Raises ConnectionLostError."""
        if isinstance(self.lost, ForkedClientError):
            raise self.lost
        if self.lost is not None or self._transport is None:
            raise ConnectionLostError(f"the connection to the broker at {self.address} is closed")
        self._transport.write(data)

    def close(self) -> None:
        """Close the socket, with which the broker ends all that is open on it."""
        self._end(ConnectionLostError(f"the connection to the broker at {self.address} was closed"))

    async def gone(self, patience: float) -> None:
        """Wait until the socket of a closed connection is closed; a broker that does not end TLS in time is left."""
        if self._transport is None or not self.address.tls:
            return
        try:
            async with asyncio.timeout(patience):
                await self._gone.wait()
        except TimeoutError:
            self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._end(broken(self.address, exc, self._words, greeted=self._greeted.done()))

    @override
    def pause_writing(self) -> None:
        self.writable = False

    @override
    def resume_writing(self) -> None:
        self.writable = True
        for producer in list(self.producers.values()):
            producer.on_writable()

    @override
    def data_received(self, data: bytes) -> None:
        self._heard = True
        try:
            for command in self._state.receive(data):
                if type(command) is c.CommandMessage:
                    consumer = self.consumers.get(command.consumer_id)
                    if consumer is not None:
                        consumer.on_message(command)
                else:
                    self._arrived(command)
        except ProtocolError as error:
            self._end(no_pulsar(self.address, data, error, greeted=self._greeted.done()))

    def _arrived(self, command: c.Command) -> None:
        if self.lost is not None:
            return
        arrival = self._state.match(command)
        if arrival is None:
            return
        if arrival.request is not None:
            request_id: int = getattr(command, "request_id")  # noqa: B009 - every answer has it
            waiting = self._answers.get(request_id)
            if waiting is not None and not waiting.done():
                waiting.set_result(command)
            return
        match command:
            case c.CommandSendReceipt():
                if (producer := self.producers.get(command.producer_id)) is not None:
                    producer.on_receipt(command)
            case c.CommandSendError():
                if (producer := self.producers.get(command.producer_id)) is not None:
                    producer.on_send_error(command)
            case c.CommandPing():
                self.send(c.CommandPong())
            case c.CommandConnected():
                if command.max_message_size:
                    self.max_message_size = command.max_message_size
                if not self._greeted.done():
                    self._greeted.set_result(None)
            case c.CommandAuthChallenge():
                self._showing = self._loop.create_task(self._show_again(command))
            case c.CommandError():
                self._end(self.refused(f"the broker at {self.address} refused", command.error, command.message))
            case c.CommandCloseProducer() | c.CommandCloseConsumer() | c.CommandTopicMigrated():
                self._closed_by_broker(command)
            case c.CommandActiveConsumerChange():
                if (consumer := self.consumers.get(command.consumer_id)) is not None:
                    consumer.on_active(command.is_active)
            case c.CommandReachedEndOfTopic():
                if (consumer := self.consumers.get(command.consumer_id)) is not None:
                    consumer.on_end_of_topic()
            case _:
                pass

    def _closed_by_broker(
        self, command: c.CommandCloseProducer | c.CommandCloseConsumer | c.CommandTopicMigrated
    ) -> None:
        error = ConnectionLostError(f"the broker at {self.address} let go of it")
        found: ProducerHandle | ConsumerHandle | None
        if isinstance(command, c.CommandCloseProducer):
            found = self.producers.pop(command.producer_id, None)
        elif isinstance(command, c.CommandCloseConsumer):
            found = self.consumers.pop(command.consumer_id, None)
        elif command.resource_type is c.ResourceType.Producer:
            found = self.producers.pop(command.resource_id, None)
        else:
            found = self.consumers.pop(command.resource_id, None)
        if found is not None:
            found.on_lost(error)

    async def _show_again(self, asked: c.CommandAuthChallenge) -> None:
        """Show credentials on the open connection; without any it ends, since another one may have them."""
        try:
            self._shown = await self._credential_data(self._shown if says_expired(asked) else None)
            self.send(auth_response(self._credentials.method, self._shown))
        except (CredentialsError, CredentialsDelayedError, ConnectionLostError) as error:
            self._end(
                ConnectionLostError(
                    f"the broker at {self.address} asks for credentials again, and there are none: {error}"
                )
            )

    def _keep_alive(self) -> None:
        # counted, not measured: after a pause of this process the answer may still be in the socket
        if not self._heard:
            if self._asked:
                silence = 2 * self._patience
                self._end(ConnectionLostError(f"the broker at {self.address} was silent for {silence:g} s"))
                return
            self.send(c.CommandPing())
        self._asked = not self._heard
        self._heard = False
        self._pinger = self._loop.call_later(self._patience, self._keep_alive)

    def _end(self, error: Exception) -> None:
        if self.lost is not None:
            return
        self.lost = error
        if self._pinger is not None:
            self._pinger.cancel()
        if self._transport is not None:
            self._transport.abort() if not self.writable else self._transport.close()
        if not self._greeted.done():
            self._greeted.set_exception(error)
            self._greeted.exception()  # it may not be awaited any more
        answers, self._answers = self._answers, {}
        for waiting in answers.values():
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()
        handles: list[ProducerHandle | ConsumerHandle] = [*self.producers.values(), *self.consumers.values()]
        self.producers.clear()
        self.consumers.clear()
        for handle in handles:
            handle.on_lost(error)


def _seconds(time: float) -> float:
    """Return a time as errors name it."""
    return round(max(time, 0.0), 3)
