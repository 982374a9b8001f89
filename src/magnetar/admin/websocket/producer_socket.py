"""A producer's socket: each frame is a message, each answer says whether it is stored.

What a peer may have under way is bounded in messages and bytes until its answers were taken; its next frame is not
read before there is room. What all peers together have under way is bounded until it is stored (``produce_memory``).
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final

from magnetar.admin.values.client_refusals import reason_of
from magnetar.admin.websocket.frames import FAILED, FrameError, SentMessage, not_stored, sent_message, stored
from magnetar.admin.websocket.produce_memory import ProduceMemory
from magnetar.admin.websocket.upgrade import Socket
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import MagnetarError
from magnetar.runtime.event import Event

log = logging.getLogger(__name__)
_BYTES_MAX: Final = 8 << 20
"""Characters of frames whose answers are not sent."""


class ProducerSocket:
    """One socket with its producer."""

    def __init__(self, socket: Socket, producer: Producer, most: int, memory: ProduceMemory) -> None:
        """``most``: messages that may be under way; ``memory``: what all sockets share."""
        self._memory = memory
        self._unstored = 0
        """Characters of its frames that count there."""
        self._ended = False
        self._socket = socket
        self._producer = producer
        self._most = most
        self._count = self._held = 0
        self._answers: list[tuple[str, int]] = []
        """What is to be sent, with the size of the frame that it answers."""
        self._answered = Event()
        self._room = Event()

    async def run(self) -> None:
        """Serve the socket until the peer leaves, which is a SocketGoneError."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._answer())
                while True:
                    while self._count >= self._most or self._held >= _BYTES_MAX:
                        self._room.clear()
                        await self._room.wait()
                    frame = await self._socket.receive()
                    while self._unstored and self._memory.full:
                        self._room.clear()
                        self._memory.wait(self._room)
                        await self._room.wait()
                    self._take(frame)
        finally:
            self._ended = True
            self._memory.leave(self._room, self._unstored)

    def _take(self, frame: str) -> None:
        size = len(frame)
        self._count += 1
        self._held += size
        self._unstored += size
        self._memory.take(self._room, size)
        context = None
        try:
            message = sent_message(frame)
            context = message.context
            receipt = self._producer.send_nowait(_outgoing(self._producer, message))
        except FrameError as error:
            self._refused(size, error.code, str(error), error.context)
            return
        except MagnetarError as error:
            self._refused(size, FAILED, str(error), context)
            return
        except Exception as error:
            # a bug is one answer and one line: the receipts of the frames before this one are still to come
            log.exception("a frame of %d characters of a WebSocket producer of %s failed", size, self._producer.topic())
            self._refused(size, FAILED, f"an unexpected error occurred in the server: {error}", context)
            return
        receipt.add_done_callback(lambda done: self._met(done, context, size))

    def _refused(self, size: int, code: int, reason: str, context: str | None) -> None:
        """A frame is answered without becoming a message."""
        self._freed(size)
        self._say(not_stored(code, reason, context), size)

    def _met(self, receipt: asyncio.Future[MessageId], context: str | None, size: int) -> None:
        """A message has met its fate."""
        self._freed(size)
        if not receipt.cancelled():
            error = receipt.exception()
            text = stored(receipt.result(), context) if error is None else not_stored(FAILED, reason_of(error), context)
            self._say(text, size)

    def _freed(self, size: int) -> None:
        """A frame is not under way any more."""
        if not self._ended:
            self._unstored -= size
            self._memory.give_back(size)
            self._room.set()

    def _say(self, text: str, size: int) -> None:
        self._answers.append((text, size))
        self._answered.set()

    async def _answer(self) -> None:
        while True:
            await self._answered.wait()
            self._answered.clear()
            answers, self._answers = self._answers, []
            for text, size in answers:
                await self._socket.send(text)
                self._count -= 1
                self._held -= size
                self._room.set()


def _outgoing(producer: Producer, message: SentMessage) -> OutgoingMessage:
    after = message.deliver_after_ms
    return producer.message(
        message.payload,
        message.properties,
        message.key,
        None,
        message.sequence_id,
        message.replication_clusters,
        message.disable_replication,
        message.event_time,
        message.deliver_at,
        timedelta(milliseconds=after) if after and not message.deliver_at else None,
    )
