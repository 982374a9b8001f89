"""Rows of columns to the payload of a batch, by a kernel; the reverse of `columnar.entries.rows`.

    message  [u32 size][01 properties.. 02 key 06 base64 03 size 05 event time 08 sequence 09 null 07 ordering key]
             [payload]

Batches are cut by number and bytes, and around a message with a time to be delivered at (`protocol.batches`). The model
is in `tests/support/batch_writer.py`, with the very same bytes.
"""

from __future__ import annotations

from typing import Final

from magnetar.columnar.entries.message_columns import BASE64_TEXT, ByteSpans
from magnetar.columnar.kernels.compiled import Int32Array, Int64Array, Uint8Array, int64, kernel, uint64
from magnetar.columnar.kernels.protobuf_wire import copy, put_varint

NO_ROOM: Final = -1


@kernel
def put_u32(target: Uint8Array, at: int, value: int) -> None:
    """Write four bytes, big-endian."""
    target[at] = value >> 24 & 255
    target[at + 1] = value >> 16 & 255
    target[at + 2] = value >> 8 & 255
    target[at + 3] = value & 255


@kernel
def _put_span(target: Uint8Array, at: int, tag: int, data: Uint8Array, start: int, end: int) -> int:
    target[at] = tag
    at = put_varint(target, at + 1, end - start)
    copy(data, start, end, target, at)
    return at + end - start


@kernel
def _varint_size(value: int) -> int:
    rest, size = uint64(value), 1
    while rest > uint64(127):
        rest >>= uint64(7)
        size += 1
    return size


@kernel
def _put_pairs(target: Uint8Array, at: int, first: int, last: int, names: ByteSpans, texts: ByteSpans) -> int:
    for pair in range(first, last):
        name, name_end = int64(names.ends[pair]), int64(names.ends[pair + 1])
        text, text_end = int64(texts.ends[pair]), int64(texts.ends[pair + 1])
        if not texts.present[pair]:
            text_end = text
        size = 2 + name_end - name + text_end - text
        size += _varint_size(name_end - name) + _varint_size(text_end - text)
        target[at] = 0x0A
        at = put_varint(target, at + 1, size)
        at = _put_span(target, at, 0x0A, names.data, name, name_end)
        at = _put_span(target, at, 0x12, texts.data, text, text_end)
    return at


@kernel
def pack_batch(
    picked: Int64Array, ids: Int64Array, first: int, max_messages: int, max_bytes: int, target: Uint8Array,
    value_data: Uint8Array, value_ends: Int32Array, value_present: Uint8Array,
    key_data: Uint8Array, key_ends: Int32Array, key_present: Uint8Array,
    ordering_data: Uint8Array, ordering_ends: Int32Array, ordering_present: Uint8Array,
    event_times: Int64Array, deliver_at: Int64Array, pair_ends: Int32Array, pair_present: Uint8Array,
    name_data: Uint8Array, name_ends: Int32Array, name_present: Uint8Array,
    text_data: Uint8Array, text_ends: Int32Array, text_present: Uint8Array,
) -> tuple[int, int]:  # fmt: skip
    """Pack messages ``picked[first:]`` up to where the batch ends: that place, and the bytes used of ``target``.

    Instead of the bytes `NO_ROOM`, if there is too little. ``ids`` go with ``picked``, the columns with the rows that
    it names. A column that is not there is empty.
    """
    values = ByteSpans(value_data, value_ends, value_present)
    keys = ByteSpans(key_data, key_ends, key_present)
    orderings = ByteSpans(ordering_data, ordering_ends, ordering_present)
    names = ByteSpans(name_data, name_ends, name_present)
    texts = ByteSpans(text_data, text_ends, text_present)
    at, index = 0, first
    while index < picked.size:
        row = picked[index]
        start, end = int64(values.ends[row]), int64(values.ends[row + 1])
        if not values.present[row]:
            end = start
        if index > first:
            if index - first >= max_messages or at + end - start > max_bytes:
                break
            if deliver_at.size and (deliver_at[row] or deliver_at[picked[index - 1]]):
                break
        room = 64 + end - start
        has_key = keys.present.size > 0 and keys.present[row] > 0
        if has_key:
            room += 16 + int64(keys.ends[row + 1]) - int64(keys.ends[row])
        has_ordering = orderings.present.size > 0 and orderings.present[row] > 0
        if has_ordering:
            room += 16 + int64(orderings.ends[row + 1]) - int64(orderings.ends[row])
        pair = pair_end = int64(0)
        if pair_present.size and pair_present[row]:
            pair, pair_end = int64(pair_ends[row]), int64(pair_ends[row + 1])
            room += 32 * (pair_end - pair) + int64(names.ends[pair_end]) - int64(names.ends[pair])
            room += int64(texts.ends[pair_end]) - int64(texts.ends[pair])
        if at + room > target.size:
            return index, NO_ROOM
        head = at
        at = _put_pairs(target, at + 4, pair, pair_end, names, texts)
        if has_key:
            at = _put_span(target, at, 0x12, keys.data, int64(keys.ends[row]), int64(keys.ends[row + 1]))
            if keys.present[row] == BASE64_TEXT:
                target[at] = 0x30
                target[at + 1] = 1
                at += 2
        target[at] = 0x18
        at = put_varint(target, at + 1, end - start)
        if event_times.size and event_times[row]:
            target[at] = 0x28
            at = put_varint(target, at + 1, event_times[row])
        target[at] = 0x40
        at = put_varint(target, at + 1, ids[index])
        if not values.present[row]:
            target[at] = 0x48
            target[at + 1] = 1
            at += 2
        if has_ordering:
            at = _put_span(target, at, 0x3A, orderings.data, int64(orderings.ends[row]), int64(orderings.ends[row + 1]))
        put_u32(target, head, at - head - 4)
        copy(values.data, start, end, target, at)
        at += end - start
        index += 1
    return index, at
