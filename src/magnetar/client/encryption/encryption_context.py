"""What a received message shows of its encryption, with the names of the official Python client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import EntryMetadata


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key that only the owner of a private key can unwrap; `magnetar.EncryptionKey` is its public name."""

    key: str
    """The name."""
    value: bytes
    """The wrapped key."""
    metadata: Mapping[str, str]
    """Notes on it."""


class EncryptionContext:
    """The encryption of one message: an application with the keys can decrypt by it what was delivered encrypted."""

    __slots__ = ("_failed", "_metadata")

    def __init__(self, metadata: EntryMetadata, *, failed: bool) -> None:
        """``metadata`` are those of the entry as it was stored."""
        self._metadata = metadata
        self._failed = failed

    def keys(self) -> list[WrappedKey]:
        """Return the wrapped data keys."""
        return [WrappedKey(one.key, one.value, dict(one.metadata)) for one in self._metadata.encryption_keys]

    def param(self) -> bytes:
        """Return the nonce of AES-GCM."""
        return self._metadata.encryption_param or b""

    def algorithm(self) -> str:
        """Return what the producer calls its algorithm; the official clients say nothing."""
        return self._metadata.encryption_algo or ""

    def compression_type(self) -> CompressionType:
        """Return how the plain payload is compressed."""
        return self._metadata.compression

    def uncompressed_message_size(self) -> int:
        """Return the bytes of the payload before it was compressed, 0 without compression."""
        return self._metadata.uncompressed_size if self._metadata.compression is not CompressionType.NONE else 0

    def batch_size(self) -> int:
        """Return the number of messages in the batch, -1 if it is none."""
        count = self._metadata.num_messages_in_batch
        return -1 if count is None else count

    def is_decryption_failed(self) -> bool:
        """Whether the message was delivered as it is, since no key opened it."""
        return self._failed

    def __repr__(self) -> str:
        names = ", ".join(one.key for one in self._metadata.encryption_keys)
        return f"EncryptionContext(keys=[{names}], is_decryption_failed={self._failed})"
