"""Joins the chunks of large messages into whole ones (rules 3.6, 6.6).

A producer that splits a message sends its chunks in order, each as an entry, all with the same uuid; chunks of several
producers stand between each other in the log. A message that is whole is given as the entry it would have been without
chunks, at the place of its *first* chunk: the reader of a range of the log gets exactly the messages whose first chunk
is in it, and looks for their other chunks after its end (`ChunkJoiner.continue_` for those, `ChunkJoiner.add` for what
is in the range).

The chunk's number distinguishes what a producer sent twice after it connected again from a gap: a first chunk begins
anew, a number that is known already is left out, a number too far ends the message, as in Pulsar's own clients (rule
6.6.4).

A message whose producer is gone is never whole. It is given up (`give_up`, and by itself when its next chunk says that
it was published ``patience_ms`` after the one before), so that the same log always gives the same messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from magnetar.model.errors import ProtocolError
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, decompress
from magnetar.protocol.entries import EntryMetadata, build_entry

MAX_MESSAGE_BYTES: Final = (1 << 31) - (64 << 20)
"""One Arrow column of one record batch holds less than 2 GiB, and there is something beside the value."""


class ReadableEntry(NamedTuple):
    """An entry that can be read on its own."""

    ledger: int
    entry: int
    data: bytes


class IncompleteMessage(NamedTuple):
    """A message in chunks that is given up."""

    uuid: str
    ledger: int
    entry: int
    chunks: int
    wanted: int

    def __str__(self) -> str:
        return (
            f"the message in chunks that begins at {self.ledger}:{self.entry} ({self.uuid}) is left out: only "
            f"{self.chunks} of its {self.wanted} chunks are there"
        )


@dataclass(slots=True)
class _Pending:
    ledger: int
    entry: int
    first: EntryMetadata
    published: int
    """When its newest chunk was published, in milliseconds."""
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0


class ChunkJoiner:
    """Joins the chunks of one range of one topic, given in the order of the log."""

    def __init__(self, patience_ms: int) -> None:
        self._patience = patience_ms
        self._pending: dict[str, _Pending] = {}
        self._given_up: list[IncompleteMessage] = []

    @property
    def waiting(self) -> bool:
        """Whether a message has begun and is not whole."""
        return bool(self._pending)

    @property
    def newest(self) -> int:
        """When the newest chunk of all messages that wait was published, in milliseconds; 0 if none waits."""
        return max((one.published for one in self._pending.values()), default=0)

    def add(self, ledger: int, entry: int, metadata: EntryMetadata, payload: bytes) -> ReadableEntry | None:
        """Take a chunk inside the range, its payload decrypted; return the whole message if this was its last chunk."""
        assert metadata.uuid is not None, "no chunk"
        if metadata.chunk_id == 0:
            # Sent again from its beginning: what is there of it does not count.
            self._pending.pop(metadata.uuid, None)
            self._pending[metadata.uuid] = _Pending(ledger, entry, metadata, metadata.publish_time)
        return self._append(metadata, payload)

    def continue_(self, metadata: EntryMetadata, payload: bytes) -> ReadableEntry | None:
        """Take a chunk after the range: it may end a message, and begins none."""
        assert metadata.uuid is not None, "no chunk"
        if metadata.chunk_id == 0:
            # It begins anew here, so it belongs to the range that is here.
            self._pending.pop(metadata.uuid, None)
            return None
        return self._append(metadata, payload)

    def give_up(self, now_ms: int | None = None) -> None:
        """Give up all that wait, or those whose newest chunk was published ``patience_ms`` before a time."""
        for uuid, one in list(self._pending.items()):
            if now_ms is None or now_ms - one.published > self._patience:
                self._drop(uuid)

    def forget(self, uuid: str) -> None:
        """Forget one that waits, without reporting it."""
        self._pending.pop(uuid, None)

    def given_up(self) -> list[IncompleteMessage]:
        """Return the messages given up since the last call."""
        found, self._given_up = self._given_up, []
        return found

    def _append(self, metadata: EntryMetadata, payload: bytes) -> ReadableEntry | None:
        uuid, number, count = metadata.uuid or "", metadata.chunk_id or 0, metadata.num_chunks_from_msg or 0
        pending = self._pending.get(uuid)
        if pending is None or number < len(pending.chunks):
            return None
        late = metadata.publish_time - pending.published > self._patience
        if number > len(pending.chunks) or late or pending.size + len(payload) > MAX_MESSAGE_BYTES:
            self._drop(uuid)
            return None
        pending.chunks.append(payload)
        pending.size += len(payload)
        pending.published = metadata.publish_time
        if len(pending.chunks) < count:
            return None
        del self._pending[uuid]
        return _whole(pending)

    def _drop(self, uuid: str) -> None:
        one = self._pending.pop(uuid)
        wanted = one.first.num_chunks_from_msg or 0
        self._given_up.append(IncompleteMessage(uuid, one.ledger, one.entry, len(one.chunks), wanted))


def _whole(pending: _Pending) -> ReadableEntry:
    first = pending.first
    payload = b"".join(pending.chunks)
    if first.total_chunk_msg_size is not None and len(payload) != first.total_chunk_msg_size:
        raise ProtocolError(
            f"the message in chunks that begins at {pending.ledger}:{pending.entry} has {len(payload)} bytes and not "
            f"the {first.total_chunk_msg_size} it says"
        )
    # It is unpacked here, since it may be larger than what a batch may be (`decompress` knows what is promised).
    try:
        payload = decompress(first.compression, payload, first.uncompressed_size, MAX_MESSAGE_BYTES)
    except DamagedPayloadError as error:
        where = f"the message in chunks that begins at {pending.ledger}:{pending.entry}"
        raise DamagedPayloadError(f"{where} is damaged: {error}", error.reason) from None
    metadata = replace(
        first,
        compression=CompressionType.NONE,
        uncompressed_size=len(payload),
        uuid=None,
        num_chunks_from_msg=None,
        total_chunk_msg_size=None,
        chunk_id=None,
    )
    return ReadableEntry(pending.ledger, pending.entry, build_entry(metadata, payload))
