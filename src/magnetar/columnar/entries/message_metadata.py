"""SingleMessageMetadata, which stands beside each message of a batch, read by a kernel into a row of numbers.

A message on its own has the same facts, from its entry's metadata.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.columnar.entries.metadata import (
    BASE64_KEY,
    EVENT_TIME,
    FLAGS,
    KEY,
    KEY_END,
    NULL_VALUE,
    ORDERING,
    ORDERING_END,
    PAIRS,
    SEQUENCE,
)
from magnetar.columnar.kernels.compiled import Int64Array, Uint8Array, int64, kernel, uint64
from magnetar.columnar.kernels.protobuf_wire import pair_spans, read_span, read_tag, read_varint, skip_field, to_int32

# What stands beside a message in a batch, as numbers.
FACT_KEY: Final = 0
FACT_KEY_STOP: Final = 1
FACT_ORDERING_KEY: Final = 2
FACT_ORDERING_KEY_STOP: Final = 3
FACT_SIZE: Final = 4
FACT_EVENT_TIME: Final = 5
FACT_SEQUENCE_ID: Final = 6
FACT_HAS_SEQUENCE_ID: Final = 7
FACT_COMPACTED_OUT: Final = 8
FACT_NULL_VALUE: Final = 9
FACT_BASE64_KEY: Final = 10
FACT_PAIRS: Final = 11
FACT_COUNT: Final = 12


@kernel
def read_facts(data: Uint8Array, at: int, end: int, facts: Int64Array) -> bool:
    """Read SingleMessageMetadata; False if it is none."""
    for index in range(FACT_COUNT):
        facts[index] = 0
    facts[FACT_KEY] = facts[FACT_ORDERING_KEY] = facts[FACT_SIZE] = -1
    while at < end:
        tag, at = read_tag(data, at, end)
        if at < 0:
            return False
        if tag & 7 == 2:
            start, at = read_span(data, at, end)
            if at < 0:
                return False
            if tag == 0x12:
                facts[FACT_KEY] = start
                facts[FACT_KEY_STOP] = at
            elif tag == 0x3A:
                facts[FACT_ORDERING_KEY] = start
                facts[FACT_ORDERING_KEY_STOP] = at
            elif tag == 0x0A:
                if pair_spans(data, start, at)[0] < 0:
                    return False
                facts[FACT_PAIRS] += 1
        elif tag & 7 == 0:
            value, at = read_varint(data, at, end)
            if at < 0:
                return False
            _note_fact(facts, tag, value)
        else:
            at = skip_field(data, tag, at, end)
            if at < 0:
                return False
    found: bool = facts[FACT_SIZE] >= 0
    return found


@kernel
def _note_fact(facts: Int64Array, tag: int, value: Any) -> None:
    if tag == 0x18:
        facts[FACT_SIZE] = to_int32(value)
    elif tag == 0x40:
        facts[FACT_SEQUENCE_ID] = int64(value)
        facts[FACT_HAS_SEQUENCE_ID] = 1
    elif tag == 0x28:
        facts[FACT_EVENT_TIME] = int64(value)
    elif tag == 0x48:
        facts[FACT_NULL_VALUE] = value != uint64(0)
    elif tag == 0x30:
        facts[FACT_BASE64_KEY] = value != uint64(0)
    elif tag == 0x20:
        facts[FACT_COMPACTED_OUT] = value != uint64(0)


@kernel
def facts_of_entry(table: Int64Array, index: int, size: int, facts: Int64Array) -> None:
    """Take the same facts of a message on its own from its entry's metadata."""
    flags = table[FLAGS, index]
    facts[FACT_KEY], facts[FACT_KEY_STOP] = table[KEY, index], table[KEY_END, index]
    facts[FACT_ORDERING_KEY], facts[FACT_ORDERING_KEY_STOP] = table[ORDERING, index], table[ORDERING_END, index]
    facts[FACT_SIZE] = size
    facts[FACT_EVENT_TIME] = table[EVENT_TIME, index]
    facts[FACT_SEQUENCE_ID], facts[FACT_HAS_SEQUENCE_ID] = table[SEQUENCE, index], 1
    facts[FACT_COMPACTED_OUT] = 0
    facts[FACT_NULL_VALUE] = flags & NULL_VALUE
    facts[FACT_BASE64_KEY] = flags & BASE64_KEY
    facts[FACT_PAIRS] = table[PAIRS, index]
