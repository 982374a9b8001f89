"""The messages of entries as rows of columns: one pass of a kernel over payloads that are in plain sight.

Every column of bytes is an Arrow array in the making: all bytes in one buffer, offsets beside it. The kernel appends
whole entries; an entry that does not fit, or cannot be read, adds nothing, and the status says which buffer is full.
The caller makes it larger and calls again for that entry.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.columnar.entries.block import ENTRY_END, FIRST, STOP
from magnetar.columnar.entries.message_metadata import (
    FACT_BASE64_KEY,
    FACT_COMPACTED_OUT,
    FACT_EVENT_TIME,
    FACT_HAS_SEQUENCE_ID,
    FACT_KEY,
    FACT_KEY_STOP,
    FACT_NULL_VALUE,
    FACT_ORDERING_KEY,
    FACT_ORDERING_KEY_STOP,
    FACT_PAIRS,
    FACT_SEQUENCE_ID,
    FACT_SIZE,
    facts_of_entry,
    read_facts,
)
from magnetar.columnar.entries.metadata import (
    BATCH,
    FLAGS,
    KEPT,
    MARKER,
    METADATA,
    NO_BATCH,
    PAYLOAD,
    PRODUCER,
    PRODUCER_END,
    SCHEMA,
    SCHEMA_END,
    SEQUENCE,
)
from magnetar.columnar.kernels.compiled import Int32Array, Int64Array, Uint8Array, int64, kernel
from magnetar.columnar.kernels.protobuf_wire import (
    copy,
    decode_base64,
    pair_spans,
    read_span,
    read_tag,
    read_u32,
    skip_field,
)

DONE: Final = 0
FULL: Final = 1
"""The limit of rows or bytes is reached before the entry."""
DAMAGED: Final = 2
NO_ROWS: Final = 3
"""No room for the rows of the entry; so for what follows."""
NO_VALUES: Final = 4
NO_KEYS: Final = 5
NO_ORDERINGS: Final = 6
NO_PAIRS: Final = 7
NO_PAIR_BYTES: Final = 8

_OFFSETS_MAX: Final = (1 << 31) - 1

# How far the columns are filled, and what limits them.
STATE_ROWS: Final = 0
STATE_VALUE_END: Final = 1
STATE_KEY_END: Final = 2
STATE_ORDERING_END: Final = 3
STATE_PAIR_COUNT: Final = 4
STATE_PAIR_KEY_END: Final = 5
STATE_PAIR_VALUE_END: Final = 6
STATE_BYTES: Final = 7
STATE_ROWS_MAX: Final = 8
STATE_BYTES_MAX: Final = 9
STATE_DETAILS: Final = 10
STATE_SIZE: Final = 12

# Rows of the table of offsets (and the first three of the table of presence).
COLUMN_VALUE: Final = 0
COLUMN_KEY: Final = 1
COLUMN_ORDERING_KEY: Final = 2
COLUMN_PROPERTIES: Final = 3

# Rows of the table of numbers.
NUMBER_EVENT_TIME: Final = 0
NUMBER_SEQUENCE_ID: Final = 1


class RowBuffers(NamedTuple):
    """Columns that are being filled, as kernels take them: one row per message."""

    state: Int64Array
    """How far the columns are filled, and what limits them (the constants that begin with STATE)."""
    offsets: Int32Array
    """Ends of values, keys, ordering keys and properties: a row for each of these columns, one more than messages."""
    present: Uint8Array
    """0 where a value, key or ordering key is null."""
    numbers: Int64Array
    """Event times and sequence ids."""
    places: Int32Array
    """Positions in the batch."""
    pairs: Int32Array
    """Ends of the names and of the texts of all properties."""
    values: Uint8Array
    keys: Uint8Array
    orderings: Uint8Array
    names: Uint8Array
    texts: Uint8Array


@kernel
def _copy_pairs(data: Uint8Array, at: int, end: int, wanted: int, out: RowBuffers) -> int:
    """Append all properties between two positions, whose field has the tag ``wanted``."""
    while at < end:
        tag, at = read_tag(data, at, end)
        if tag != wanted:
            at = skip_field(data, tag, at, end)
            continue
        start, at = read_span(data, at, end)
        key, key_end, value, value_end = pair_spans(data, start, at)
        count = out.state[STATE_PAIR_COUNT]
        if count + 2 > out.pairs.shape[1]:
            return NO_PAIRS
        name_end = out.state[STATE_PAIR_KEY_END] + key_end - key
        text_end = out.state[STATE_PAIR_VALUE_END] + value_end - value
        if name_end > out.names.size or text_end > out.texts.size:
            return NO_PAIR_BYTES
        copy(data, key, key_end, out.names, out.state[STATE_PAIR_KEY_END])
        copy(data, value, value_end, out.texts, out.state[STATE_PAIR_VALUE_END])
        out.state[STATE_PAIR_COUNT] = count + 1
        out.state[STATE_PAIR_KEY_END] = out.pairs[0, count + 1] = name_end
        out.state[STATE_PAIR_VALUE_END] = out.pairs[1, count + 1] = text_end
    return DONE


@kernel
def _append_details(data: Uint8Array, facts: Int64Array, out: RowBuffers) -> int:
    state, offsets, present = out.state, out.offsets, out.present
    row = state[STATE_ROWS]
    out.numbers[NUMBER_EVENT_TIME, row] = facts[FACT_EVENT_TIME]
    out.numbers[NUMBER_SEQUENCE_ID, row] = facts[FACT_SEQUENCE_ID]
    start, stop, to = facts[FACT_KEY], facts[FACT_KEY_STOP], state[STATE_KEY_END]
    present[COLUMN_KEY, row] = start >= 0
    if start >= 0:
        if to + stop - start > out.keys.size:
            return NO_KEYS
        written = decode_base64(data, start, stop, out.keys, to) if facts[FACT_BASE64_KEY] else -1
        if written < 0:
            copy(data, start, stop, out.keys, to)
            written = stop - start
        state[STATE_KEY_END] = to + written
    offsets[COLUMN_KEY, row + 1] = state[STATE_KEY_END]
    start, stop, to = facts[FACT_ORDERING_KEY], facts[FACT_ORDERING_KEY_STOP], state[STATE_ORDERING_END]
    present[COLUMN_ORDERING_KEY, row] = start >= 0
    if start >= 0:
        if to + stop - start > out.orderings.size:
            return NO_ORDERINGS
        copy(data, start, stop, out.orderings, to)
        state[STATE_ORDERING_END] = to + stop - start
    offsets[COLUMN_ORDERING_KEY, row + 1] = state[STATE_ORDERING_END]
    return DONE


@kernel
def _append_entry(
    stored: Uint8Array,
    plain: Uint8Array,
    at: int,
    end: int,
    table: Int64Array,
    index: int,
    facts: Int64Array,
    out: RowBuffers,
) -> int:
    """Append one entry whose payload is ``plain[at:end]``."""
    state, offsets, present = out.state, out.offsets, out.present
    details = state[STATE_DETAILS]
    count, first, stop = table[BATCH, index], table[FIRST, index], table[STOP, index]
    alone = count == NO_BATCH
    last = min(int64(1) if alone else count, stop)
    if state[STATE_ROWS] + min(last, (end - at) // 4 + 1) + 1 > offsets.shape[1]:
        return NO_ROWS
    if state[STATE_VALUE_END] + end - at > out.values.size:
        return NO_VALUES
    for number in range(last):
        head = head_end = int64(0)
        data = plain
        if alone:
            facts_of_entry(table, index, end - at, facts)
            data = stored
        else:
            if at + 4 > end:
                return DAMAGED
            head, head_end = at + 4, at + 4 + read_u32(plain, at)
            if head_end > end or not read_facts(plain, head, head_end, facts):
                return DAMAGED
            at = head_end
            if facts[FACT_SIZE] > end - at:
                return DAMAGED
            if not facts[FACT_HAS_SEQUENCE_ID]:
                facts[FACT_SEQUENCE_ID] = table[SEQUENCE, index] + number
        if number >= first and not facts[FACT_COMPACTED_OUT]:
            row = state[STATE_ROWS]
            present[COLUMN_VALUE, row] = not facts[FACT_NULL_VALUE]
            if not facts[FACT_NULL_VALUE]:
                copy(plain, at, at + facts[FACT_SIZE], out.values, state[STATE_VALUE_END])
                state[STATE_VALUE_END] += facts[FACT_SIZE]
            offsets[COLUMN_VALUE, row + 1] = state[STATE_VALUE_END]
            out.places[0, row] = number
            if details:
                status = _append_details(data, facts, out)
                if status == DONE and facts[FACT_PAIRS]:
                    if alone:
                        head, head_end = table[METADATA, index], table[PAYLOAD, index]
                    status = _copy_pairs(data, head, head_end, 0x22 if alone else 0x0A, out)
                if status != DONE:
                    return status
                offsets[COLUMN_PROPERTIES, row + 1] = state[STATE_PAIR_COUNT]
            state[STATE_ROWS] = row + 1
        at += facts[FACT_SIZE]
    return DONE


@kernel
def append_rows(
    stored: Uint8Array,
    plain: Uint8Array,
    plain_start: int,
    plain_end: int,
    table: Int64Array,
    index: int,
    last: int,
    scratch: Int64Array,
    state: Int64Array,
    offsets: Int32Array,
    present: Uint8Array,
    numbers: Int64Array,
    places: Int32Array,
    pairs: Int32Array,
    values: Uint8Array,
    keys: Uint8Array,
    orderings: Uint8Array,
    names: Uint8Array,
    texts: Uint8Array,
) -> tuple[int, int]:
    """Append entries ``[index, last)`` of the table: a status, and the entry it is about (``last`` if DONE).

    ``stored`` is the buffer that the table's spans are about. Payloads stand there too if ``plain_end`` is -1, else
    the one payload, of entry ``index`` alone, is ``plain[plain_start:plain_end]``. From ``state`` on the arguments are
    those of `RowBuffers`: a NamedTuple that comes from Python costs 2 us per call (docs/decisions/010-columnar.md).
    """
    out = RowBuffers(state, offsets, present, numbers, places, pairs, values, keys, orderings, names, texts)
    facts, before = scratch[0], scratch[1]
    while index < last:
        if state[STATE_ROWS] >= state[STATE_ROWS_MAX] or state[STATE_BYTES] >= state[STATE_BYTES_MAX]:
            return FULL, index
        table[KEPT, index] = 0
        if not table[FLAGS, index] & MARKER:
            at, end = plain_start, plain_end
            if plain_end < 0:
                at, end = table[PAYLOAD, index], table[ENTRY_END, index]
            if state[STATE_VALUE_END] and state[STATE_VALUE_END] + end - at > _OFFSETS_MAX:
                return FULL, index
            for number in range(STATE_SIZE):
                before[number] = state[number]
            status = _append_entry(stored, plain, at, end, table, index, facts, out)
            if status != DONE:
                for number in range(STATE_SIZE):
                    state[number] = before[number]
                return status, index
            state[STATE_BYTES] += end - at
            if state[STATE_DETAILS] and table[BATCH, index] == NO_BATCH:
                # Its key and properties stand there, and become columns too.
                state[STATE_BYTES] += table[PAYLOAD, index] - table[METADATA, index]
            table[KEPT, index] = state[STATE_ROWS] - before[STATE_ROWS]
        # Every message has them, and they are kept as long as the entry is.
        texts_size = table[PRODUCER_END, index] - table[PRODUCER, index]
        if table[SCHEMA, index] >= 0:
            texts_size += table[SCHEMA_END, index] - table[SCHEMA, index]
        state[STATE_BYTES] += texts_size * max(table[KEPT, index], 1)
        index += 1
    return DONE, last
