"""A ledger as a Parquet file that a broker can read back and any other program can query.

One row per entry, in the order of the entries:

    ledger        int64   the same in every row
    entry         int64   0, 1, 2, ...
    publish_time  timestamp[ms, UTC]   as the producer wrote it; null if the entry's metadata cannot be read
    index         int64   message index of the entry's first message in its topic
    messages      int32   how many messages the entry is counted as
    size          int32   bytes of the entry
    data          binary  the entry as the broker stores it: 0e 01, checksum, metadata, payload (batched, compressed and
                          encrypted as it was sent)

A row group holds consecutive entries of about 4 MB and is what is read back at once; a ledger's entry ``n`` is in the
group that the row counts of the footer say. Pages are compressed with zstd and carry checksums. The key
``magnetar.ledger`` of the file's metadata is a JSON object: ``version`` (1), ``topic``, ``ledger``, ``entries``,
``messages``, ``bytes``, ``first_publish_ms``, ``last_publish_ms`` (null if unknown), ``digest``
(:mod:`magnetar.offload.digest`), ``groups`` (for each row group the CRC-32C of its entries, lengths and counts),
``indexes`` (for each row group the message index of its first message).

What a group's checksum or the digest does not confirm is refused: a broker never gives an entry that it did not get.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # the same
from crc32c import crc32c

from magnetar.model.errors import PersistenceError, ProtocolError
from magnetar.offload.digest import LedgerDigest
from magnetar.protocol.entries import publish_time

VERSION: Final = 1
KEY: Final = b"magnetar.ledger"
GROUP_BYTES: Final = 4 << 20
GROUP_ENTRIES: Final = 1 << 16
NO_TIME: Final = -(1 << 63)
"""Publish time of an entry whose metadata cannot be read."""

SCHEMA: Final = pa.schema(
    [
        pa.field("ledger", pa.int64(), nullable=False),
        pa.field("entry", pa.int64(), nullable=False),
        pa.field("publish_time", pa.timestamp("ms", tz="UTC")),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("messages", pa.int32(), nullable=False),
        pa.field("size", pa.int32(), nullable=False),
        pa.field("data", pa.binary(), nullable=False),
    ]
)
_ENCODINGS: Final = {
    "entry": "DELTA_BINARY_PACKED", "publish_time": "DELTA_BINARY_PACKED", "index": "DELTA_BINARY_PACKED",
    "size": "DELTA_BINARY_PACKED", "data": "PLAIN",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LedgerFileInfo:
    """The description of a ledger that its file holds."""

    topic: str
    ledger: int
    entries: int
    messages: int
    bytes: int
    """The bytes of the entries, as stored in the broker."""
    first_publish_ms: int | None
    last_publish_ms: int | None
    digest: str
    groups: tuple[int, ...]
    """CRC-32C of each row group."""
    indexes: tuple[int, ...]
    """Message index of each row group's first message."""


class _Part(NamedTuple):
    """Some entries of the next group, as columns."""

    data: bytes
    sizes: Any
    counts: Any
    times: Any


class LedgerWriter:
    """Writes one file. ``add`` in order, then ``close``; not thread-safe, and need not stay in one thread."""

    def __init__(self, target: Any, topic: str, ledger: int, first_index: int, group_bytes: int = GROUP_BYTES) -> None:
        """``target``: a path, or a writable file."""
        self._writer = pq.ParquetWriter(
            target, SCHEMA, compression="zstd", compression_level=1, use_dictionary=["ledger", "messages"],
            column_encoding=_ENCODINGS, write_page_checksum=True, store_schema=False,
            write_statistics=["ledger", "entry", "publish_time", "index"],
        )  # fmt: skip
        self._topic = topic
        self._ledger = ledger
        self._index = first_index
        self._group_bytes = group_bytes
        self._digest = LedgerDigest()
        self._parts: list[_Part] = []
        self._rows = self._size = 0
        """Rows and bytes of the parts: what the next group will have."""
        self._written = 0
        self._groups: list[int] = []
        self._indexes: list[int] = []
        self._first_ms: int | None = None
        self._last_ms: int | None = None

    def add(self, entries: Sequence[bytes], counts: Sequence[int] | None) -> None:
        """The next entries; ``counts``: messages per entry, None means all are 1."""
        n = len(entries)
        sizes = np.fromiter(map(len, entries), np.uint32, n)
        numbers = np.ones(n, np.int32) if counts is None else np.array(counts, np.int32)
        self.add_columns(b"".join(entries), sizes, numbers, np.fromiter(map(_time, entries), np.int64, n))

    def add_columns(self, data: Any, sizes: Any, counts: Any, times: Any) -> None:
        """Add entries as columns: one after the other in a buffer, their sizes (u32), message counts (i32) and
        publish times (i64, ``NO_TIME`` where there is none). The buffer is copied."""
        ends = np.cumsum(sizes, dtype=np.int64)
        view, at, n = memoryview(data), 0, len(sizes)
        while at < n:
            begin = int(ends[at - 1]) if at else 0
            stop = int(np.searchsorted(ends, begin + self._group_bytes - self._size, side="right"))
            stop = min(stop, at + GROUP_ENTRIES - self._rows, n)
            if stop <= at:
                if self._rows:
                    self._write_group()
                    continue
                stop = at + 1
            end = int(ends[stop - 1])
            self._parts.append(_Part(bytes(view[begin:end]), sizes[at:stop], counts[at:stop], times[at:stop]))
            self._rows += stop - at
            self._size += end - begin
            at = stop

    def _write_group(self) -> None:
        n, first = self._rows, self._written
        joined = b"".join([part.data for part in self._parts])
        sizes, counts, times = (
            np.concatenate([part[column] for part in self._parts]) for column in range(1, len(_Part._fields))
        )
        index = np.cumsum(counts, dtype=np.int64) - counts + self._index
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        unknown = times == NO_TIME
        columns = [
            pa.array(np.full(n, self._ledger, np.int64)),
            pa.array(np.arange(first, first + n, dtype=np.int64)),
            pa.array(times, pa.timestamp("ms", tz="UTC"), mask=unknown),
            pa.array(index),
            pa.array(counts.astype(np.int32)),
            pa.array(sizes.astype(np.int32)),
            pa.BinaryArray.from_buffers(pa.binary(), n, [None, pa.py_buffer(offsets), pa.py_buffer(joined)]),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), row_group_size=n)
        known = times[~unknown]
        if len(known):
            self._first_ms = int(known[0]) if self._first_ms is None else self._first_ms
            self._last_ms = int(known[-1])
        self._groups.append(_checksum(joined, sizes, counts))
        self._digest.add_columns(joined, sizes.astype("<u4"), counts.astype("<u4"))
        self._indexes.append(self._index)
        messages = int(counts.sum())
        self._digest.messages += messages
        self._index += messages
        self._written += n
        self._parts, self._rows, self._size = [], 0, 0

    def close(self) -> LedgerFileInfo:
        """Everything is in the file, which is not synced."""
        if self._rows:
            self._write_group()
        digest = self._digest
        facts = LedgerFileInfo(
            self._topic, self._ledger, digest.entries, digest.messages, digest.bytes, self._first_ms, self._last_ms,
            digest.hexdigest(), tuple(self._groups), tuple(self._indexes),
        )  # fmt: skip
        self._writer.add_key_value_metadata({KEY: json.dumps({"version": VERSION, **asdict(facts)}).encode()})
        self._writer.close()
        return facts

    def abandon(self) -> None:
        """The file is of no use; only its handle is given back."""
        self._writer.close()


class LedgerFile:
    """A file's footer: enough to know which group holds what. Immutable, for any thread."""

    def __init__(self, metadata: Any, where: str) -> None:
        """``metadata``: what :func:`footer` read. Raises PersistenceError if the file is not of this format."""
        self.metadata = metadata
        self.where = where
        self.facts = facts = _facts(metadata, where)
        self._ends: list[int] = []
        end = 0
        for number in range(metadata.num_row_groups):
            end += metadata.row_group(number).num_rows
            self._ends.append(end)
        if end != facts.entries or {len(facts.groups), len(facts.indexes)} != {len(self._ends)}:
            raise PersistenceError(f"{where} holds {end} entries where its metadata says {facts.entries}")

    def group_of(self, entry: int) -> tuple[int, int]:
        """Number of the row group that holds an entry, and the group's first entry. Raises PersistenceError."""
        ends = self._ends
        if not 0 <= entry < (ends[-1] if ends else 0):
            raise PersistenceError(f"{self.where} has no entry {entry}, only {self.facts.entries} entries")
        number = int(np.searchsorted(np.array(ends), entry, side="right"))
        return number, ends[number - 1] if number else 0

    def index_of(self, number: int) -> int:
        """Message index of a row group's first message."""
        return self.facts.indexes[number]

    def group(self, source: Any, number: int) -> tuple[Any, Any]:
        """Entries (pyarrow binary array) and message counts (numpy int32) of a row group, checked.

        Raises PersistenceError, OSError.
        """
        try:
            file = pq.ParquetFile(source, metadata=self.metadata, page_checksum_verification=True, pre_buffer=True)
            table = file.read_row_group(number, columns=["data", "messages"], use_threads=False)
            data = _one(table.column("data"))
            counts = _one(table.column("messages")).to_numpy(zero_copy_only=False)
            joined, sizes = buffers(data)
        except (pa.ArrowException, ValueError) as error:
            raise PersistenceError(f"{self.where} is damaged in row group {number}: {error}") from error
        if _checksum(joined, sizes, counts) != self.facts.groups[number]:
            raise PersistenceError(f"{self.where} is damaged in row group {number}: its checksum does not match")
        return data, counts

    def groups(self, source: Any) -> Iterator[tuple[Any, Any]]:
        """All of them, in order."""
        for number in range(len(self._ends)):
            yield self.group(source, number)


def footer(source: Any, where: str) -> Any:
    """A file's Parquet metadata. Raises PersistenceError if it is no Parquet file, OSError."""
    try:
        return pq.read_metadata(source)
    except (pa.ArrowException, ValueError) as error:
        raise PersistenceError(f"{where} is no Parquet file, or not a whole one: {error}") from error


def check(file: LedgerFile, source: Any) -> LedgerDigest:
    """Read everything and return what it amounts to. Raises PersistenceError if it is not what the file says."""
    digest = LedgerDigest()
    for data, counts in file.groups(source):
        joined, sizes = buffers(data)
        digest.add_columns(joined, sizes, counts.astype(np.uint32))
        digest.messages += int(counts.sum())
    facts = file.facts
    found = (digest.entries, digest.bytes, digest.messages, digest.hexdigest())
    if found != (facts.entries, facts.bytes, facts.messages, facts.digest):
        raise PersistenceError(f"{file.where} holds other entries than its metadata says")
    return digest


def buffers(data: Any) -> tuple[Any, Any]:
    """All bytes of a binary array without nulls in one buffer, and its lengths (numpy u32)."""
    if data.null_count:
        raise ValueError("an entry is null")
    n = len(data)
    offsets = np.frombuffer(data.buffers()[1], dtype=np.int32, count=data.offset + n + 1)[data.offset :]
    content = data.buffers()[2]
    joined = b"" if content is None else memoryview(content)[int(offsets[0]) : int(offsets[-1])]
    return joined, np.diff(offsets).astype(np.uint32)


def _one(column: Any) -> Any:
    combined = column.combine_chunks()
    # a chunked array of one chunk, or none at all, comes back as such from some versions
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _checksum(joined: Any, sizes: Any, counts: Any) -> int:
    crc: int = crc32c(joined)
    crc = crc32c(sizes.astype("<u4").tobytes(), crc)
    return int(crc32c(counts.astype("<u4").tobytes(), crc))


def _time(entry: bytes) -> int:
    try:
        return publish_time(entry)
    except ProtocolError:
        return NO_TIME


def _facts(metadata: Any, where: str) -> LedgerFileInfo:
    text = (metadata.metadata or {}).get(KEY)
    if text is None:
        raise PersistenceError(f"{where} was not written as a ledger's copy: its metadata has no {KEY.decode()}")
    try:
        fields = json.loads(text)
        version = fields.pop("version")
        if version != VERSION:
            raise PersistenceError(f"{where} is of format version {version}; this magnetar knows {VERSION}")
        lists = {name: tuple(map(int, fields[name])) for name in ("groups", "indexes")}
        return LedgerFileInfo(**{**fields, **lists})
    except (ValueError, TypeError, KeyError) as error:
        raise PersistenceError(f"{where} has a damaged {KEY.decode()} in its metadata: {error}") from error
