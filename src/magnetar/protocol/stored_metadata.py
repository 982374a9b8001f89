"""Metadata of entries in a log, read without failing.

Any client that may publish can store an entry whose metadata cannot be read: its checksum holds, it has its receipt,
and like Apache Pulsar the broker does not parse what it stores. Everything that walks over stored entries (expiry,
retention, quotas, searches, statistics, REST) reads them through this module, so that one such entry is passed by and
changes nothing for those beside it.
"""

from __future__ import annotations

from magnetar.model.errors import MagnetarError
from magnetar.protocol.entries import EntryMetadata, metadata_of, publish_time


def stored_publish_time(entry: bytes) -> int | None:
    """Return when the producer sent it, in milliseconds by its own clock; None if that cannot be read."""
    try:
        return publish_time(entry)
    except (MagnetarError, ValueError):
        return None


def read_metadata(entry: bytes) -> EntryMetadata | None:
    """Return all metadata; None if they cannot be read."""
    try:
        return metadata_of(entry)
    except (MagnetarError, ValueError):
        return None


def batch_size(entry: bytes) -> int | None:
    """Return how many messages the metadata claim; None for no batch, less than one, or what cannot be read."""
    metadata = read_metadata(entry)
    if metadata is None or (count := metadata.num_messages_in_batch) is None or count < 1:
        return None
    return count
