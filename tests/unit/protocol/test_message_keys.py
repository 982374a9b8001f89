"""Keys as they travel: base64 of what is no text, and one rule for what says it is base64 and is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.entries.block import EntryBytes, block_of
from magnetar.columnar.entries.column_builder import ColumnBuilder
from magnetar.protocol.entries import EntryMetadata, build_entry, sticky_key_by_protobuf
from magnetar.protocol.message_keys import key_of_base64, key_text

BROKEN = ["00000000=", "0000====", "0=", "=", "==", "===", "AA", "AAA", "A===", "AA=A", "AA-_", "AAAA\n", "AA==AAAA"]


@given(st.binary(max_size=40), st.booleans())
def test_a_key_comes_back(key: bytes, always: bool) -> None:
    text, encoded = key_text(key, base64_always=always)
    assert encoded or not always
    assert (key_of_base64(text.encode()) if encoded else text.encode()) == key


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_base64_is_the_key_itself(text: str) -> None:
    assert key_of_base64(text.encode()) == text.encode()


@given(st.sampled_from(BROKEN) | st.text(alphabet="AZaz09+/=-\n", max_size=13))
def test_key_shared_and_columns_read_the_same_key(text: str) -> None:
    entry = build_entry(EntryMetadata("p", 0, 1, partition_key=text, partition_key_b64_encoded=True), b"x")
    columns = ColumnBuilder()
    assert not list(columns.add(block_of([EntryBytes(0, 0, entry)])))
    wanted = key_of_base64(text.encode())
    assert sticky_key_by_protobuf(entry) == wanted
    assert columns.keys().to_pylist() == [wanted]
