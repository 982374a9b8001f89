"""What an entry of a compacted view holds beside the entry of the topic."""

from __future__ import annotations

import pytest

from magnetar.compaction.view_entries import index_of, pack, place_of

ENTRY = b"\x0e\x01" + bytes(20)


@pytest.mark.parametrize(
    ("index", "kept"), [(-1, False), (0, True), ((1 << 48) - 1, True), (1 << 48, False), (1 << 62, False)]
)
def test_an_index_is_kept_where_it_has_room(index: int, kept: bool) -> None:
    """A producer that claims a million messages in each entry is no reason why a topic cannot be compacted."""
    packed = pack(7, 3, 4, ENTRY, index)
    assert place_of(packed) == (7, 3, 4, ENTRY)
    assert index_of(packed) == index if kept else index_of(packed) < 0
