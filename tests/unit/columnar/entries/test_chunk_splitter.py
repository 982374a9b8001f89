"""A message that is cut into chunks is the same message once they are joined."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.single_entries.chunk_splitter import split_into_chunks
from magnetar.columnar.single_entries.encryption import Decryptor, Encryptor
from magnetar.columnar.single_entries.opener import EntryOpener
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import metadata_of, payload_of
from tests.support.batch_writer import BatchWriter
from tests.support.encrypted_entries import pair

SEAL, UNSEAL = Encryptor({"k": pair()[1]}), Decryptor({"k": pair()[0]})
"""A private key is checked when it is loaded, which takes longer than everything else here: it is loaded once."""


@given(
    st.none() | st.binary(min_size=1, max_size=4_000),
    st.none() | st.binary(max_size=4),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    st.sampled_from(CompressionType),
    st.integers(150, 1_500),
    st.booleans(),
)
def test_split_and_joined(
    value: bytes | None, key: bytes | None, properties: dict[str, str], kind: CompressionType, room: int, sealed: bool
) -> None:
    pairs = tuple(properties.items())
    (batch,) = BatchWriter("p").pack(5, [value], [7], [key], [9], [pairs])
    metadata = dataclasses.replace(metadata_of(batch.entry), compression=kind)
    seal = SEAL.encrypt if sealed else None
    limit = room + (400 if sealed else 0)
    entries = split_into_chunks(metadata, payload_of(batch.entry), limit, seal)
    assert entries and max(map(len, entries)) <= limit
    opener = EntryOpener("t", 1_000, UNSEAL)
    found = [opener.open(1, number, entry) for number, entry in enumerate(entries)]
    assert found[:-1] == [None] * (len(entries) - 1) and found[-1] is not None
    whole = metadata_of(found[-1].data)
    assert (found[-1].entry, whole.sequence_id, whole.event_time, whole.properties) == (0, 7, 9, pairs)
    assert (whole.partition_key, whole.null_value) == (metadata.partition_key, value is None)
    if len(entries) > 1:
        assert payload_of(found[-1].data) == value
        assert all(metadata_of(entry).uuid == "p-7" for entry in entries)


def test_properties_that_do_not_fit_give_nothing() -> None:
    (batch,) = BatchWriter("p").pack(5, [b"x"], [7], [None], [0], [(("a", "b" * 200),)])
    assert split_into_chunks(metadata_of(batch.entry), payload_of(batch.entry), 200, None) == []
