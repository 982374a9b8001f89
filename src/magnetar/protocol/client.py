"""The client's side of a connection: request ids, and which answer belongs to which request (rules 1.1.12, 1.3).

`send` turns a command into bytes and remembers it if it wants an answer. `receive` turns bytes into commands and
`match` judges each and finds its request: an arrival with a request is its answer, one without is a push (a message,
a receipt, a PING, something the broker closed). Answers to requests that were forgotten (timed out) are dropped.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode
from magnetar.protocol.commands.names import name_of
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.frames import MAX_FRAME_SIZE

ANSWERS: Final[dict[type, type]] = {
    c.CommandAddPartitionToTxn: c.CommandAddPartitionToTxnResponse,
    c.CommandAddSubscriptionToTxn: c.CommandAddSubscriptionToTxnResponse,
    c.CommandCloseConsumer: c.CommandSuccess,
    c.CommandCloseProducer: c.CommandSuccess,
    c.CommandConsumerStats: c.CommandConsumerStatsResponse,
    c.CommandEndTxn: c.CommandEndTxnResponse,
    c.CommandEndTxnOnPartition: c.CommandEndTxnOnPartitionResponse,
    c.CommandEndTxnOnSubscription: c.CommandEndTxnOnSubscriptionResponse,
    c.CommandGetLastMessageId: c.CommandGetLastMessageIdResponse,
    c.CommandGetOrCreateSchema: c.CommandGetOrCreateSchemaResponse,
    c.CommandGetSchema: c.CommandGetSchemaResponse,
    c.CommandGetTopicsOfNamespace: c.CommandGetTopicsOfNamespaceResponse,
    c.CommandLookupTopic: c.CommandLookupTopicResponse,
    c.CommandNewTxn: c.CommandNewTxnResponse,
    c.CommandPartitionedTopicMetadata: c.CommandPartitionedTopicMetadataResponse,
    c.CommandProducer: c.CommandProducerSuccess,
    c.CommandSeek: c.CommandSuccess,
    c.CommandSubscribe: c.CommandSuccess,
    c.CommandTcClientConnectRequest: c.CommandTcClientConnectResponse,
    c.CommandUnsubscribe: c.CommandSuccess,
    c.CommandWatchTopicList: c.CommandWatchTopicListSuccess,
    c.CommandWatchTopicListClose: c.CommandSuccess,
    c.CommandAck: c.CommandAckResponse,
}
"""Request to its answer; ERROR answers any of them, an ACK wants one only with a request id (rule 1.3.5)."""

PUSHES: Final[frozenset[type]] = frozenset(
    {
        c.CommandActiveConsumerChange,
        c.CommandAuthChallenge,
        c.CommandCloseConsumer,
        c.CommandCloseProducer,
        c.CommandMessage,
        c.CommandPing,
        c.CommandPong,
        c.CommandReachedEndOfTopic,
        c.CommandSendError,
        c.CommandSendReceipt,
        c.CommandTopicMigrated,
        c.CommandWatchTopicUpdate,
    }
)
"""Commands that a broker sends without being asked, or without a request id (rule 1.3.18)."""

HANDSHAKE_REQUEST_ID: Final = -1


class Arrival(NamedTuple):
    command: c.Command
    request: c.Command | None


class ClientConnection:
    """Decoder, state and open requests of one connection to a broker."""

    __slots__ = ("_connected", "_decoder", "_last_request_id", "_requests")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        self._decoder = Decoder(max_frame_size)
        self._connected = False
        self._last_request_id = -1
        self._requests: dict[int, c.Command] = {}

    @property
    def connected(self) -> bool:
        """Note that CONNECTED has arrived."""
        return self._connected

    def new_request_id(self) -> int:
        """Return a number, from 0 on, that is never the same twice on a connection."""
        self._last_request_id += 1
        return self._last_request_id

    def send(self, command: c.Command) -> bytes:
        """Return the frame to write; remembers a command that will be answered."""
        if type(command) in ANSWERS:
            request_id: int | None = getattr(command, "request_id", None)
            if request_id is not None:
                if request_id in self._requests:
                    raise ValueError(f"request id {request_id} is in use")
                self._requests[request_id] = command
        return encode(command)

    def forget(self, request_id: int) -> None:
        """Stop waiting for this answer."""
        self._requests.pop(request_id, None)

    def open_requests(self) -> list[c.Command]:
        """Return requests without an answer, oldest first; they fail when the connection is lost."""
        return list(self._requests.values())

    def receive(self, data: bytes) -> list[c.Command]:
        """Return whole commands in order; MalformedBytesError carries those before bytes that are none."""
        return self._decoder.feed(data)

    def take_held(self) -> bytes:
        """Return the bytes of a frame that is not whole; `receive` does not know them any more then."""
        return self._decoder.take_held()

    def match(self, command: c.Command) -> Arrival | None:
        """Return the arrival of one command, None for an answer without request. ProtocolError if out of turn."""
        kind = type(command)
        if not self._connected:
            return self._greeting(command)
        if kind in PUSHES:
            return Arrival(command, None)
        if isinstance(command, c.CommandError) and command.request_id == HANDSHAKE_REQUEST_ID:
            return Arrival(command, None)
        request_id: int | None = getattr(command, "request_id", None)
        if kind is not c.CommandError and kind not in _ANSWER_KINDS:
            raise ProtocolError(f"{name_of(kind)} from a broker")
        request = None if request_id is None else self._requests.get(request_id)
        if request is None or request_id is None:
            return None
        if kind is not c.CommandError and ANSWERS[type(request)] is not kind:
            raise ProtocolError(f"{name_of(kind)} as the answer to {name_of(type(request))}")
        if not (isinstance(command, c.CommandProducerSuccess) and not command.producer_ready):
            # A producer that waits for exclusive access gets two answers (rule 3.2.4).
            del self._requests[request_id]
        return Arrival(command, request)

    def _greeting(self, command: c.Command) -> Arrival:
        if isinstance(command, c.CommandConnected):
            self._connected = True
        elif not isinstance(command, c.CommandAuthChallenge | c.CommandError | c.CommandPing | c.CommandPong):
            raise ProtocolError(f"{name_of(type(command))} from a broker before CONNECTED")
        return Arrival(command, None)


_ANSWER_KINDS: Final = frozenset(ANSWERS.values())
