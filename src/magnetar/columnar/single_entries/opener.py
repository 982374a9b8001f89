"""Turns stored entries into entries that can be read on their own, before they are decoded.

Most are so already and pass untouched, at the price of looking for two bytes. Encrypted ones are decrypted, and chunks
are joined; both become the entry that the producer would have sent without encryption and chunks, so whatever decodes
entries need not know. The order is that of Pulsar's clients (rule 1.1.10): each entry is decrypted, chunks are
joined, then the whole is unpacked.

What no key opens follows Pulsar's ConsumerCryptoFailureAction (rule 6.11.2): an error, left out, or given as it is
(`CryptoFailureAction.CONSUME`): one message per entry whose value is the ciphertext, with what a key holder needs to
open it in its properties.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from magnetar.columnar.single_entries.chunk_joiner import ChunkJoiner, ReadableEntry
from magnetar.columnar.single_entries.encryption import Decryptor, UndecryptableError
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import (
    EntryMetadata,
    build_entry,
    is_encrypted,
    may_be_chunk,
    mended_metadata_of,
    payload_of,
)

PROPERTY: Final = "pulsar.encryption."
"""Prefix of the properties of a message that is given encrypted."""

NAMED: Final = 10
"""How many of the entries of a range that are left out are named."""


class CryptoFailureAction(Enum):
    """What becomes of an entry that no key opens, by Pulsar's ConsumerCryptoFailureAction."""

    FAIL = "fail"
    SKIP = "skip"
    CONSUME = "consume"


class EntryOpener:
    """Opens the entries of one range of one topic. Without a ``decryptor`` there are no keys."""

    def __init__(
        self,
        topic: str,
        patience_ms: int,
        decryptor: Decryptor | None = None,
        failure: CryptoFailureAction = CryptoFailureAction.FAIL,
        on_left_out: Callable[[str], None] | None = None,
    ) -> None:
        self.joiner = ChunkJoiner(patience_ms)
        self._topic = topic
        self._decryptor = decryptor or Decryptor({})
        self._unopened = 0
        self._failure = failure
        self._tell = on_left_out or (lambda _: None)

    def open(self, ledger: int, entry: int, data: bytes) -> ReadableEntry | None:
        """Open an entry of the range; None if it gives nothing now. UndecryptableError, ProtocolError."""
        if not may_be_chunk(data) and not is_encrypted(data):
            return ReadableEntry(ledger, entry, data)
        metadata, payload = mended_metadata_of(data), payload_of(data)
        if metadata.encryption_keys:
            try:
                metadata, payload = self._decryptor.decrypt(metadata, payload)
            except UndecryptableError as error:
                return self._undecryptable(ledger, entry, metadata, payload, error)
            data = build_entry(metadata, payload)
        if not is_chunk(metadata):
            return ReadableEntry(ledger, entry, data)
        whole = self.joiner.add(ledger, entry, metadata, payload)
        self.report()
        return whole

    def continue_(self, data: bytes) -> ReadableEntry | None:
        """Open an entry after the range: only what it adds to a message in chunks that began inside counts."""
        if not may_be_chunk(data):
            return None
        metadata, payload = mended_metadata_of(data), payload_of(data)
        if not is_chunk(metadata):
            return None
        if metadata.encryption_keys:
            try:
                metadata, payload = self._decryptor.decrypt(metadata, payload)
            except UndecryptableError:
                return None
        whole = self.joiner.continue_(metadata, payload)
        self.report()
        return whole

    def report(self) -> None:
        """Report which messages in chunks were given up."""
        for one in self.joiner.given_up():
            self._tell(f"{self._topic}: {one}")

    def _undecryptable(
        self, ledger: int, entry: int, metadata: EntryMetadata, payload: bytes, error: UndecryptableError
    ) -> ReadableEntry | None:
        where = f"{self._topic}: entry {ledger}:{entry} is {error}"
        if self._failure is CryptoFailureAction.FAIL:
            raise UndecryptableError(
                f"{where}; give the option 'decryption.privateKey', or let 'decryption.onFailure' be skip or consume"
            )
        if self._failure is CryptoFailureAction.SKIP:
            self._unopened += 1
            if self._unopened <= NAMED:
                more = "" if self._unopened < NAMED else ", as all others that follow, which are not named"
                self._tell(f"{where}; it is left out{more}")
            return None
        return ReadableEntry(ledger, entry, build_entry(_as_it_is(metadata), payload))


def is_chunk(metadata: EntryMetadata) -> bool:
    """Whether the entry is one of several chunks: a message in one chunk is none, whatever it says (rule 3.6.2)."""
    return metadata.uuid is not None and (metadata.num_chunks_from_msg or 0) > 1


def _as_it_is(metadata: EntryMetadata) -> EntryMetadata:
    """Return metadata for a ciphertext as a message of its own; how to open it becomes properties."""
    notes = [
        ("param", base64.b64encode(metadata.encryption_param or b"").decode()),
        ("compression", metadata.compression.name),
        ("uncompressedSize", str(metadata.uncompressed_size)),
        *((f"key.{one.key}", base64.b64encode(one.value).decode()) for one in metadata.encryption_keys),
    ]
    if metadata.num_messages_in_batch is not None:
        notes.append(("numMessagesInBatch", str(metadata.num_messages_in_batch)))
    if is_chunk(metadata):
        notes.append(("chunk", f"{metadata.uuid} {metadata.chunk_id} {metadata.num_chunks_from_msg}"))
    return as_single_message(metadata, [(PROPERTY + name, text) for name, text in notes])


def as_single_message(metadata: EntryMetadata, notes: Sequence[tuple[str, str]]) -> EntryMetadata:
    """Return metadata for one message that has the payload as it is; ``notes`` become properties."""
    return replace(
        metadata,
        properties=(*metadata.properties, *notes),
        encryption_keys=(),
        encryption_algo=None,
        encryption_param=None,
        compression=CompressionType.NONE,
        uncompressed_size=0,
        num_messages_in_batch=None,
        uuid=None,
        num_chunks_from_msg=None,
        total_chunk_msg_size=None,
        chunk_id=None,
    )
