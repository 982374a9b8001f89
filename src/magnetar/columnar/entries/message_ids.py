"""Serialized MessageIdData of every message, written by a kernel."""

from __future__ import annotations

from typing import Final

from magnetar.columnar.kernels.compiled import Int32Array, Int64Array, Uint8Array, kernel
from magnetar.columnar.kernels.protobuf_wire import put_varint

MESSAGE_ID_BYTES_MAX: Final = 48


@kernel
def write_message_ids(
    ledgers: Int64Array,
    entries: Int64Array,
    batches: Int64Array,
    kept: Int64Array,
    places: Int32Array,
    partition: int,
    target: Uint8Array,
    offsets: Int32Array,
) -> None:
    """Write every row's id: 01 ledger 02 entry 03 partition (if any) 04 batch index 06 batch size (of batches).

    ``target`` has room for 48 bytes a row.
    """
    row = at = 0
    offsets[0] = 0
    for index in range(kept.size):
        for _ in range(kept[index]):
            target[at] = 0x08
            at = put_varint(target, at + 1, ledgers[index])
            target[at] = 0x10
            at = put_varint(target, at + 1, entries[index])
            if partition >= 0:
                target[at] = 0x18
                at = put_varint(target, at + 1, partition)
            if batches[index] > 0:
                target[at] = 0x20
                at = put_varint(target, at + 1, places[row])
                target[at] = 0x30
                at = put_varint(target, at + 1, batches[index])
            row += 1
            offsets[row] = at
