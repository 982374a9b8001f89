"""A client that says exactly what a test asks for: Pulsar frames over any asyncio transport, nothing on its own.

It runs in a simulation (:class:`~magnetar.testing.simloop.SimLoop` with a network) and against real sockets alike,
as all it uses is ``loop.create_connection``. Every command that arrives goes, in order, to ``on_command`` and then to
the caller that waits for it, or into an inbox by type until it is asked for; only PING is answered by itself (rules
of group 12), unless ``answer_pings`` is off. Requests get their answer by request id; ERROR becomes
:class:`RawClientError`; the end of the connection fails everything that waits with :class:`DisconnectedError`.

Entries are made here from a handful of metadata fields, on purpose without the product's own code for them:

    magic 0x0e01, crc32c, metadata size | 0a name | 10 sequence | 18 publish time | 32 partition key | payload
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from typing_extensions import override

from magnetar.model.errors import ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.frames import ENTRY_HEADER_SIZE, with_checksum
from magnetar.protocol.varints import varint

C = TypeVar("C")

ANSWERS = (
    c.CommandSuccess,
    c.CommandProducerSuccess,
    c.CommandPartitionedTopicMetadataResponse,
    c.CommandLookupTopicResponse,
    c.CommandGetTopicsOfNamespaceResponse,
    c.CommandWatchTopicListSuccess,
    c.CommandGetLastMessageIdResponse,
    c.CommandConsumerStatsResponse,
    c.CommandGetSchemaResponse,
    c.CommandGetOrCreateSchemaResponse,
    c.CommandTcClientConnectResponse,
    c.CommandNewTxnResponse,
    c.CommandAddPartitionToTxnResponse,
    c.CommandAddSubscriptionToTxnResponse,
    c.CommandEndTxnResponse,
    c.CommandEndTxnOnPartitionResponse,
    c.CommandEndTxnOnSubscriptionResponse,
    c.CommandError,
)
"""What a request can be answered with; AckResponse is apart, it shares no ids with them by habit of the clients."""


class RawClientError(Exception):
    """The broker answered ERROR, SEND_ERROR or an ACK_RESPONSE with an error."""

    def __init__(self, code: ServerError, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message


class DisconnectedError(ConnectionError):
    """The connection is gone and with it the answer."""


def make_entry(
    payload: bytes, *, producer: str, sequence_id: int, publish_time_ms: int = 1, key: str = "", deliver_at_ms: int = 0
) -> bytes:
    """What a producer sends for one unbatched, uncompressed message."""
    metadata = b"\x0a" + varint(len(producer.encode())) + producer.encode()
    metadata += b"\x10" + varint(sequence_id) + b"\x18" + varint(publish_time_ms)
    if key:
        metadata += b"\x32" + varint(len(key.encode())) + key.encode()
    if deliver_at_ms:
        metadata += b"\x98\x01" + varint(deliver_at_ms)
    return with_checksum(struct.pack(">I", len(metadata)) + metadata + payload)


def payload_of(entry: bytes) -> bytes:
    """The payload after header and metadata."""
    (metadata_size,) = struct.unpack_from(">I", entry, ENTRY_HEADER_SIZE - 4)
    return entry[ENTRY_HEADER_SIZE + metadata_size :]


class RawClient(asyncio.Protocol):
    """One connection. All coroutines wait ``patience_s`` of the loop's time at most."""

    def __init__(self, *, answer_pings: bool = True, patience_s: float = 30.0) -> None:
        self.answer_pings = answer_pings
        self.patience_s = patience_s
        self.on_command: Callable[[c.Command], None] | None = None
        self.pings = 0
        self.transport: asyncio.Transport
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._decoder = Decoder()
        self._inbox: dict[type[Any], deque[Any]] = {}
        self._waiting: list[tuple[tuple[type[Any], ...], Callable[[Any], bool], asyncio.Future[Any]]] = []
        self._next_id = 0
        self._open: Counter[int] = Counter()
        """Requests by their id, less their answers."""
        self._counts = True

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        answer_pings: bool = True,
        patience_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> RawClient:
        """A connection on which nothing was said yet."""
        _, client = await asyncio.get_running_loop().create_connection(
            lambda: cls(answer_pings=answer_pings, patience_s=patience_s), host, port, ssl=tls
        )
        return client

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        for command in self._decoder.feed(data):
            self._arrived(command)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(exc)
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(DisconnectedError(f"connection lost: {exc}"))
        self._waiting.clear()

    def _arrived(self, command: c.Command) -> None:
        if isinstance(command, c.CommandPing):
            self.pings += 1
            if self.answer_pings:
                self.say(c.CommandPong())
        if isinstance(command, ANSWERS):
            self._answered(command)
        if self.on_command is not None:
            self.on_command(command)
        for index, (kinds, matches, future) in enumerate(self._waiting):
            if not future.done() and isinstance(command, kinds) and matches(command):
                del self._waiting[index]
                future.set_result(command)
                return
        self._inbox.setdefault(type(command), deque()).append(command)

    def _answered(self, answer: Any) -> None:
        """One request has one answer, whatever becomes of it; a producer that waits for its turn has two."""
        if self._counts and getattr(answer, "producer_ready", True) and answer.request_id in self._open:
            self._open[answer.request_id] -= 1
            assert self._open[answer.request_id] >= 0, f"another answer to request {answer.request_id}: {answer}"

    def new_id(self) -> int:
        """Return an unused id; requests, producers and consumers share the numbers."""
        self._next_id += 1
        return self._next_id

    def say(self, *commands: c.Command) -> None:
        """Write the frames in one piece."""
        for one in commands:
            request_id: int | None = getattr(one, "request_id", None)
            if request_id is not None:
                self._open[request_id] += 1
        self.transport.write(b"".join(map(codec.encode, commands)))

    def say_bytes(self, data: bytes) -> None:
        """Write bytes as they are, also such as no codec would write; answers are not counted from then on."""
        self._counts = False
        self.transport.write(data)

    def heard(self, kind: type[C]) -> list[C]:
        """What has arrived of this type and was not taken by anyone."""
        return list(self._inbox.get(kind, ()))

    async def hear(self, *kinds: type[C], where: Callable[[C], bool] = lambda _: True) -> C:
        """The next command of these types that fits, from the inbox or from the wire; it is taken out."""
        for kind in kinds:
            waiting = self._inbox.get(kind, deque())
            for index, command in enumerate(waiting):
                if where(command):
                    del waiting[index]
                    return cast(C, command)
        if self.lost.done():
            raise DisconnectedError(f"connection lost: {self.lost.result()}")
        future: asyncio.Future[C] = asyncio.get_running_loop().create_future()
        waiter = (kinds, where, future)
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(self.patience_s):
                return await future
        except TimeoutError:
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise TimeoutError(f"no {wanted} within {self.patience_s:g} s; heard {self._summary()}") from None
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)

    def _summary(self) -> dict[str, int]:
        """How many commands of each type wait in the inbox."""
        return {kind.__name__: len(waiting) for kind, waiting in self._inbox.items() if waiting}

    async def request(self, command: c.Command, kind: type[C]) -> C:
        """Say it and wait for the answer with its request id. Raises RefusedError for ERROR."""
        request_id = cast(Any, command).request_id
        self.say(command)
        answer = await self.hear(*cast(tuple[type[Any], ...], ANSWERS), where=lambda a: a.request_id == request_id)
        if isinstance(answer, c.CommandError):
            raise RawClientError(answer.error, answer.message)
        if not isinstance(answer, kind):
            raise AssertionError(f"{command} was answered with {answer}")
        return answer

    async def connect(
        self, version: str = "magnetar-raw", protocol_version: int = 21, **options: Any
    ) -> c.CommandConnected:
        """The handshake (rules of 1.2)."""
        self.say(c.CommandConnect(version, protocol_version, **options))
        answer: Any = await self.hear(cast(type[Any], c.CommandConnected), c.CommandError)
        if isinstance(answer, c.CommandError):
            raise RawClientError(answer.error, answer.message)
        return cast(c.CommandConnected, answer)

    async def lookup(self, topic: str, *, authoritative: bool = False) -> c.CommandLookupTopicResponse:
        return await self.request(
            c.CommandLookupTopic(topic, self.new_id(), authoritative), c.CommandLookupTopicResponse
        )

    async def partitions(self, topic: str) -> c.CommandPartitionedTopicMetadataResponse:
        return await self.request(
            c.CommandPartitionedTopicMetadata(topic, self.new_id()), c.CommandPartitionedTopicMetadataResponse
        )

    async def producer(self, topic: str, name: str | None = None, **options: Any) -> RawProducer:
        """Open a producer; ``options`` are fields of PRODUCER."""
        producer_id = self.new_id()
        command = c.CommandProducer(
            topic, producer_id, self.new_id(), name, user_provided_producer_name=name is not None, **options
        )
        return RawProducer(self, producer_id, await self.request(command, c.CommandProducerSuccess))

    async def subscribe(
        self, topic: str, subscription: str, sub_type: c.SubType = c.SubType.Exclusive, **options: Any
    ) -> RawConsumer:
        """Open a consumer without permits; ``options`` are fields of SUBSCRIBE."""
        consumer_id = self.new_id()
        command = c.CommandSubscribe(topic, subscription, sub_type, consumer_id, self.new_id(), **options)
        await self.request(command, c.CommandSuccess)
        return RawConsumer(self, consumer_id)

    async def close(self) -> None:
        """End the connection in order."""
        self.transport.close()
        async with asyncio.timeout(self.patience_s):
            await asyncio.shield(self.lost)


class RawProducer:
    """A producer on a :class:`RawClient`."""

    def __init__(self, client: RawClient, producer_id: int, opened: c.CommandProducerSuccess) -> None:
        self.client = client
        self.producer_id = producer_id
        self.opened = opened
        self.name = opened.producer_name
        self.next_sequence_id = opened.last_sequence_id + 1

    def send(
        self,
        payload: bytes,
        *,
        key: str = "",
        sequence_id: int | None = None,
        entry: bytes | None = None,
        count: int = 1,
        txn: c.TxnId | None = None,
        chunk: bool = False,
    ) -> int:
        """Write one SEND and wait for nothing; returns its sequence id. ``entry`` replaces the one made here."""
        if sequence_id is None:
            sequence_id = self.next_sequence_id
        self.next_sequence_id = sequence_id + 1
        if entry is None:
            entry = make_entry(payload, producer=self.name, sequence_id=sequence_id, key=key)
        self.client.say(c.CommandSend(self.producer_id, sequence_id, count, None, chunk, txn, False, None, entry))
        return sequence_id

    async def receipt(self, sequence_id: int | None = None) -> c.CommandSendReceipt:
        """The next receipt of this producer, or the one of ``sequence_id``. Raises RawClientError for SEND_ERROR."""

        def mine(answer: Any) -> bool:
            wanted = sequence_id is None or answer.sequence_id == sequence_id
            return wanted and bool(answer.producer_id == self.producer_id)

        answer: Any = await self.client.hear(cast(type[Any], c.CommandSendReceipt), c.CommandSendError, where=mine)
        if isinstance(answer, c.CommandSendError):
            raise RawClientError(answer.error, answer.message)
        return cast(c.CommandSendReceipt, answer)

    async def publish(self, payload: bytes, *, key: str = "") -> c.MessageIdData:
        """Send one message and wait for its receipt."""
        receipt = await self.receipt(self.send(payload, key=key))
        assert receipt.message_id is not None
        return receipt.message_id

    async def close(self) -> None:
        await self.client.request(c.CommandCloseProducer(self.producer_id, self.client.new_id()), c.CommandSuccess)


class RawConsumer:
    """A consumer on a :class:`RawClient`; permits and acks are the test's affair."""

    def __init__(self, client: RawClient, consumer_id: int) -> None:
        self.client = client
        self.consumer_id = consumer_id

    def flow(self, permits: int) -> None:
        self.client.say(c.CommandFlow(self.consumer_id, permits))

    async def receive(self) -> c.CommandMessage:
        """The next message for this consumer."""
        return await self.client.hear(c.CommandMessage, where=lambda message: message.consumer_id == self.consumer_id)

    def ack_unconfirmed(self, *ids: c.MessageIdData, cumulative: bool = False) -> None:
        """Say ACK without asking for an answer."""
        self.client.say(c.CommandAck(self.consumer_id, _ack_type(cumulative), ids))

    async def ack(self, *ids: c.MessageIdData, cumulative: bool = False, txn: c.TxnId | None = None) -> None:
        """Say ACK and wait for ACK_RESPONSE (rule 1.3.5)."""
        request_id = self.client.new_id()
        self.client.say(c.CommandAck(self.consumer_id, _ack_type(cumulative), ids, txn=txn, request_id=request_id))
        answer = await self.client.hear(c.CommandAckResponse, where=lambda answer: answer.request_id == request_id)
        if answer.error is not None:
            raise RawClientError(answer.error, answer.message or "")

    def redeliver(self, ids: Iterable[c.MessageIdData] = (), *, epoch: int | None = None) -> None:
        """Ask for these again, without ids for everything unacked."""
        self.client.say(c.CommandRedeliverUnacknowledgedMessages(self.consumer_id, tuple(ids), epoch))

    async def seek(self, to: c.MessageIdData | None = None, *, publish_time_ms: int | None = None) -> None:
        """Move the cursor; the broker then closes the consumer (rules of 5.9)."""
        command = c.CommandSeek(self.consumer_id, self.client.new_id(), to, publish_time_ms)
        await self.client.request(command, c.CommandSuccess)

    async def last_message_id(self) -> c.CommandGetLastMessageIdResponse:
        command = c.CommandGetLastMessageId(self.consumer_id, self.client.new_id())
        return await self.client.request(command, c.CommandGetLastMessageIdResponse)

    async def unsubscribe(self, *, force: bool = False) -> None:
        await self.client.request(c.CommandUnsubscribe(self.consumer_id, self.client.new_id(), force), c.CommandSuccess)

    async def close(self) -> None:
        await self.client.request(c.CommandCloseConsumer(self.consumer_id, self.client.new_id()), c.CommandSuccess)


def _ack_type(cumulative: bool) -> c.AckType:
    return c.AckType.Cumulative if cumulative else c.AckType.Individual
