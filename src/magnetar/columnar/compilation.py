"""Kernels ahead of their first use: each is used once on next to nothing, which loads it from the disk, or compiles it
and keeps it there (`kernels.compiled`).

    python -m magnetar.columnar.compilation

compiles all of them for who installs magnetar where its users may not write, for instance into an image. A machine with
another kind of processor compiles them again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.arrow_decoder import METADATA, ArrowDecoder
from magnetar.columnar.entries import frames, metadata
from magnetar.columnar.entries.block import BLOCK_ROWS, EntryBlock, EntryBytes, block_of, uint8_array
from magnetar.columnar.entries.checksums import CRC_TABLES, wrong_checksums
from magnetar.columnar.entries.message_columns import message_columns
from magnetar.columnar.entries.packer import Packer
from magnetar.columnar.kernels.compiled import compilations
from magnetar.columnar.values import Binary, ValueDecoder
from magnetar.schema_definitions.avro import parse

_RECORD: Final = b'{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}'


def _packed() -> EntryBlock:
    texts = pa.array([b"a"], pa.binary())
    pairs = pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))
    columns = message_columns(texts, texts, np.ones(1, np.int64), pairs, texts)
    packer = Packer("", max_messages=1, max_bytes=1 << 10)
    (batch,) = packer.pack(1, columns, np.zeros(1, np.int64), np.zeros(1, np.int64))
    return block_of([EntryBytes(0, 0, batch.entry)])


def _received() -> None:
    table = np.empty((BLOCK_ROWS, 1), np.int64)
    frames.read_frames(uint8_array(b""), 0, 0, 1, 0, table, CRC_TABLES)


def _decoded() -> None:
    block = _packed()
    metadata.scan_metadata(block)
    decoder = ArrowDecoder("persistent://public/default/t", ValueDecoder(Binary()), tuple(METADATA))
    list(decoder.add_block(block))
    list(decoder.flush())
    wrong_checksums(block.data, block.table)


def _avro() -> None:
    from magnetar.columnar.avro.read.reader import Avro
    from magnetar.columnar.avro.write.writer import AvroWriter

    schema = parse(_RECORD)
    written = AvroWriter(schema, ["n"]).write({"n": pa.array([1], pa.int64())}, np.ones(1, bool))
    Avro(schema).read(written, [(1, None)])


def _json() -> None:
    from magnetar.columnar.json.reader import Json

    Json(parse(_RECORD)).read(pa.array([b'{"n":1}'], pa.binary()), [(1, None)])


_USES: Final[tuple[Callable[[], Any], ...]] = (_received, _decoded, _avro, _json)


def uses() -> Iterator[None]:
    """Use every kernel of this package that Python calls; stops between them, those for bytes first."""
    for use in _USES:
        use()
        yield


def main() -> None:
    """Compile what is not there yet."""
    for _ in uses():
        pass
    sys.stdout.write(f"compiled {len(compilations())} kernels; the others were there\n")


if __name__ == "__main__":
    main()
