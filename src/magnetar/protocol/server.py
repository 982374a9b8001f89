"""The broker's side of a connection: which commands a client may send, and when (rule 1.2.1).

    NEW --CONNECT--> GREETED --accept()--> OPEN
                       | challenge() allows one AUTH_RESPONSE, in GREETED and, for a refresh, in OPEN

PING and PONG are always legal. `receive` decodes; `admit` judges one command at the moment it is handled, because what
is legal depends on how the commands before it were answered.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.protocol.commands.names import name_of
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.frames import MAX_FRAME_SIZE

GREETING_MAX: Final = 64 << 10
"""Bytes of the largest frame before the client is accepted; a CONNECT with a token has a few hundred."""

FROM_CLIENT: Final[frozenset[type]] = frozenset(
    {
        c.AckRun,
        c.SendRun,
        c.CommandAck,
        c.CommandAddPartitionToTxn,
        c.CommandAddSubscriptionToTxn,
        c.CommandCloseConsumer,
        c.CommandCloseProducer,
        c.CommandConsumerStats,
        c.CommandEndTxn,
        c.CommandEndTxnOnPartition,
        c.CommandEndTxnOnSubscription,
        c.CommandFlow,
        c.CommandGetLastMessageId,
        c.CommandGetOrCreateSchema,
        c.CommandGetSchema,
        c.CommandGetTopicsOfNamespace,
        c.UnparsedCommand,
        c.CommandLookupTopic,
        c.CommandNewTxn,
        c.CommandPartitionedTopicMetadata,
        c.CommandProducer,
        c.CommandRedeliverUnacknowledgedMessages,
        c.CommandSeek,
        c.CommandSend,
        c.CommandSubscribe,
        c.CommandTcClientConnectRequest,
        c.CommandUnsubscribe,
        c.CommandWatchTopicList,
        c.CommandWatchTopicListClose,
    }
)
"""What an accepted client may send, besides the handshake and PING and PONG."""


class ServerState(Enum):
    NEW = "nothing was said"
    GREETED = "CONNECT came, CONNECTED was not sent"
    OPEN = "CONNECTED was sent"


class ServerConnection:
    """Decoder and state of one client's connection; the session owns it."""

    __slots__ = ("_decoder", "_max_frame_size", "challenged", "state")

    def __init__(self, max_frame_size: int = MAX_FRAME_SIZE) -> None:
        self.state = ServerState.NEW
        self.challenged = False
        """Whether AUTH_CHALLENGE was sent and not answered."""
        self._max_frame_size = max_frame_size
        self._decoder = Decoder(min(max_frame_size, GREETING_MAX), from_client=True)

    def receive(self, data: bytes | memoryview) -> list[c.Command]:
        """Return the first whole commands, in order; MalformedBytesError carries those before bytes that are none.

        ``data`` may be a view of memory that is used again afterwards.
        """
        return self._decoder.feed_slice(data)

    def later(self, data: bytes | memoryview) -> None:
        """Keep bytes that came while there are commands to be handled first."""
        self._decoder.later(data)

    def more(self) -> list[c.Command]:
        """Return the next commands."""
        return self._decoder.more()

    def drop(self) -> None:
        """Let go of all bytes: the connection is lost."""
        self._decoder.drop()

    @property
    def slice_bytes(self) -> int:
        """Bytes of frames that one call decodes at most."""
        return self._decoder.slice_bytes

    @slice_bytes.setter
    def slice_bytes(self, size: int) -> None:
        self._decoder.slice_bytes = size

    @property
    def seen_large(self) -> bool:
        """Whether a large SEND ever came in several pieces."""
        return self._decoder.seen_large

    @property
    def waiting(self) -> bool:
        """Whether more commands are whole than were given out."""
        return self._decoder.waiting

    @property
    def held(self) -> int:
        """Bytes of an unfinished frame."""
        return self._decoder.held

    @property
    def missing(self) -> int:
        """Bytes that an unfinished frame lacks, as far as is known."""
        return self._decoder.missing

    def admit(self, command: c.Command) -> None:
        """Raise ProtocolError unless ``command`` may come now; the connection then closes without a reply."""
        kind = type(command)
        if self.state is ServerState.OPEN and kind in FROM_CLIENT:
            return
        if kind is c.CommandPing or kind is c.CommandPong:
            return
        if kind is c.CommandConnect and self.state is ServerState.NEW:
            self.state = ServerState.GREETED
            return
        if kind is c.CommandAuthResponse and self.challenged:
            self.challenged = False
            return
        raise ProtocolError(f"{name_of(kind)} from a client while {self.state.value}")

    def challenge(self) -> None:
        """Note that AUTH_CHALLENGE is being sent: one AUTH_RESPONSE may come."""
        self.challenged = True

    def accept(self) -> None:
        """Note that CONNECTED is being sent."""
        if self.state is not ServerState.GREETED:
            raise ProtocolError(f"cannot accept a client while {self.state.value}")
        self.state = ServerState.OPEN
        self._decoder.max_frame_size = self._max_frame_size
