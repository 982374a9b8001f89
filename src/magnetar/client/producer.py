"""Raw entries under one producer name, each with a receipt (rules of group 3).

The caller builds whole entries (`protocol.batches` does it in bulk) and numbers them with growing sequence ids. Frames
are collected and written together; a window of entries and bytes without receipt bounds memory and keeps the broker's
receipts from filling the socket while we fill it the other way.

When the connection is lost, everything without a receipt is sent again under the same name and sequence ids, except
what the broker says it has (`last_sequence_id`, which it knows only with deduplication on). Without deduplication an
entry whose receipt was lost is therefore stored twice: at least once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from magnetar.client.connection import Connection
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.codec import frame_head
from magnetar.runtime.clock import steady_seconds

_WINDOW_ENTRIES: Final = 1_000
_WINDOW_BYTES: Final = 32 << 20
_WRITE_BYTES: Final = 256 << 10
_PAUSE: Final = 0.2


class _Unconfirmed(NamedTuple):
    sequence_id: int
    highest_sequence_id: int
    messages: int
    entry: bytes
    is_chunk: bool = False
    """Only the last chunk of a message counts it, the others have ``messages`` 0."""


class Producer:
    """A producer on one topic or partition, for one thread.

    Use it as a context manager, and `flush` before leaving it.
    """

    def __init__(
        self,
        lookup: Lookup,
        topic: str,
        name: str | None = None,
        *,
        send_timeout: float = 60.0,
        schema: c.Schema | None = None,
        encrypted: bool = False,
    ) -> None:
        """``schema`` is registered if it is new; the broker refuses what may not follow (rule 10.4).

        ``encrypted`` says that all entries will be; a namespace may demand it.
        """
        self.topic = topic
        self.schema_version: bytes | None = None
        """The version of the schema that was given, to be put into entries."""
        self._schema = schema
        self.name = name or ""
        self.messages_confirmed = 0
        self._lookup = lookup
        self._given_name = name
        self._encrypted = encrypted
        self._send_timeout = send_timeout
        self._unconfirmed: deque[_Unconfirmed] = deque()
        self._bytes = 0
        self._frames: list[bytes] = []
        self._frame_bytes = 0
        self._epoch = 0
        self._last_progress = steady_seconds()
        self._connection, self._producer_id, self.last_sequence_id = lookup.patiently(self._open)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def max_message_size(self) -> int:
        """The largest entry that the broker takes."""
        return self._connection.max_message_size

    def send(self, entry: bytes, messages: int, sequence_id: int, highest_sequence_id: int) -> None:
        """Send one entry; blocks while the window is full. Raises ClientTimeoutError, RefusedError."""
        self._take(_Unconfirmed(sequence_id, highest_sequence_id, messages, entry))

    def send_chunks(self, entries: Sequence[bytes], sequence_id: int) -> None:
        """Send one message in chunks, each an entry."""
        last = len(entries) - 1
        for number, entry in enumerate(entries):
            self._take(_Unconfirmed(sequence_id, sequence_id, int(number == last), entry, last > 0))

    def _take(self, waiting: _Unconfirmed) -> None:
        if not self._unconfirmed:
            self._last_progress = steady_seconds()
        self._unconfirmed.append(waiting)
        self._bytes += len(waiting.entry)
        self._append_frame(waiting)
        if self._frame_bytes >= _WRITE_BYTES:
            self._guarded_write()
        while len(self._unconfirmed) > _WINDOW_ENTRIES or self._bytes > _WINDOW_BYTES:
            self._wait_for_receipts()

    def flush(self) -> None:
        """Wait until every entry has its receipt."""
        while self._unconfirmed:
            self._wait_for_receipts()

    def ask_last_sequence_id(self) -> int:
        """Return the last sequence id that the broker has of this name, once all receipts are there; -1 if it has
        none."""
        assert not self._unconfirmed, "flush first"
        self.close()
        self._epoch += 1
        self._connection, self._producer_id, last = self._lookup.patiently(self._open)
        return last

    def close(self) -> None:
        """Free the name at the broker at once. Entries without a receipt are given up: `flush` first."""
        connection = self._connection
        if not connection.closed:
            try:
                connection.request(
                    c.CommandCloseProducer(self._producer_id, connection.new_request_id()),
                    c.CommandSuccess,
                    f"close {self.topic}",
                )
            except (ConnectionLostError, ClientTimeoutError, RefusedError):
                pass  # a closed connection frees the name as well
            connection.close()

    def _open(self) -> tuple[Connection, int, int]:
        connection = self._lookup.connect(self.topic)
        producer_id = connection.new_handle()
        try:
            answer = connection.request(
                c.CommandProducer(
                    self.topic,
                    producer_id,
                    connection.new_request_id(),
                    self.name or self._given_name,
                    schema=self._schema,
                    encrypted=self._encrypted,
                    epoch=self._epoch,
                    user_provided_producer_name=self._given_name is not None,
                ),
                c.CommandProducerSuccess,
                f"open producer {self.name or self._given_name or '(unnamed)'} on {self.topic}",
            )
        except BaseException:
            connection.close()
            raise
        self.name = answer.producer_name
        self.schema_version = answer.schema_version if self._schema is not None else None
        return connection, producer_id, answer.last_sequence_id

    def _append_frame(self, waiting: _Unconfirmed) -> None:
        head = frame_head(
            c.CommandSend(
                self._producer_id,
                waiting.sequence_id,
                max(waiting.messages, 1),
                waiting.highest_sequence_id if waiting.messages > 1 else None,
                waiting.is_chunk,
                None,
                False,
                None,
                waiting.entry,
            )
        )
        self._frames += head, waiting.entry
        self._frame_bytes += len(head) + len(waiting.entry)

    def _wait_for_receipts(self) -> None:
        self._guarded_write()
        try:
            for push in self._connection.receive(1.0):
                self._heard(push)
        except ConnectionLostError as error:
            self._reconnect(error)
        if self._unconfirmed and steady_seconds() - self._last_progress > self._send_timeout:
            raise ClientTimeoutError(
                f"{self.topic}: {len(self._unconfirmed)} entries of producer {self.name} got no receipt in "
                f"{self._send_timeout:.0f} s; is the broker's disk full or its backlog quota reached?"
            )

    def _guarded_write(self) -> None:
        frames, self._frames, self._frame_bytes = self._frames, [], 0
        if frames:
            try:
                self._connection.write_all(frames)
            except ConnectionLostError as error:
                self._reconnect(error)

    def _heard(self, push: c.Command) -> None:
        if type(push) is c.CommandSendReceipt:
            if self._unconfirmed and push.sequence_id == self._unconfirmed[0].sequence_id:
                done = self._unconfirmed.popleft()
                self._bytes -= len(done.entry)
                self.messages_confirmed += done.messages
                self.last_sequence_id = done.highest_sequence_id
                self._last_progress = steady_seconds()
            elif self._unconfirmed and push.sequence_id > self._unconfirmed[0].sequence_id:
                raise ConnectionLostError(f"{self.topic}: a receipt for {push.sequence_id} came out of order")
        elif isinstance(push, c.CommandSendError):
            if push.error not in _SENT_AGAIN:
                raise RefusedError(f"publish to {self.topic} as {self.name}", push.error, push.message)
            raise ConnectionLostError(f"{self.topic}: entry {push.sequence_id}: {push.message}")
        elif isinstance(push, c.CommandCloseProducer | c.CommandTopicMigrated):
            raise ConnectionLostError(f"{self.topic}: the broker closed producer {self.name}")

    def _reconnect(self, why: ConnectionLostError) -> None:
        """Open the same name again, and send everything again that has no receipt."""
        self._connection.close()
        self._frames, self._frame_bytes = [], 0
        if steady_seconds() - self._last_progress > self._send_timeout:
            raise why
        time.sleep(_PAUSE)
        self._epoch += 1
        self._connection, self._producer_id, last = self._lookup.patiently(self._open)
        while self._unconfirmed and self._unconfirmed[0].highest_sequence_id <= last:
            done = self._unconfirmed.popleft()
            self._bytes -= len(done.entry)
            self.messages_confirmed += done.messages
        for waiting in self._unconfirmed:
            self._append_frame(waiting)


_SENT_AGAIN: Final = frozenset({ServerError.ChecksumError, ServerError.PersistenceError})
"""The broker refused the bytes as they arrived or could not store them now; the same entry may pass next time."""
