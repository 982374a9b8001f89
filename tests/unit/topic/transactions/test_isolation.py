"""What transactions that are open keep from the consumers of a subscription."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.broker.topic.transactions.isolation import PendingAckRule
from magnetar.model.ordinals import SortedOrdinals
from magnetar.protocol.commands.ids import TxnId
from magnetar.transactions.pending_acks import PartialBatch, PendingAcks


def test_a_batch_goes_out_while_a_message_of_it_is_neither_acknowledged_nor_reserved() -> None:
    """The cursor has acknowledged message 0 of each batch of three (rule 9.12)."""
    pending = PendingAcks()
    pending.parts = {5: PartialBatch(5, 0b010, 3), 6: PartialBatch(6, 0b110, 3), 7: PartialBatch(7, 0b100, 3)}
    rule = PendingAckRule(pending, cast("Any", SimpleNamespace(remaining_indexes=lambda ordinal: (0b110,))))
    assert [rule.next_open(start, 9) for start in (4, 5, 6, 7)] == [4, 5, 7, 7]
    assert [rule.next_closed(start, 9) for start in (4, 5, 6, 7)] == [6, 6, 6, 9]


@given(
    whole=st.sets(st.integers(0, 40)), parts=st.sets(st.integers(0, 40)), start=st.integers(0, 45),
    length=st.integers(0, 45),
)  # fmt: skip
def test_stretches_are_those_of_the_entries(whole: set[int], parts: set[int], start: int, length: int) -> None:
    """Of every third batch a message is left."""
    pending = PendingAcks()
    batches = [PartialBatch(o, 0b01 if o % 3 == 0 else 0b11, 2) for o in parts - whole]
    pending.reserve(TxnId(0, 1), whole, batches)
    rule = PendingAckRule(pending, cast("Any", SimpleNamespace(remaining_indexes=lambda ordinal: ())))
    closed = whole | {o for o in parts if o % 3}
    stop = start + length
    assert rule.next_open(start, stop) == next((o for o in range(start, stop) if o not in closed), stop)
    assert rule.next_closed(start, stop) == next((o for o in range(start, stop) if o in closed), stop)


def test_what_a_large_transaction_reserved_goes_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one 100,000 took a second of the loop at the end, twice, and as many looks to pass over."""
    pending, txn = PendingAcks(), TxnId(0, 1)
    pending.reserve(txn, range(100_000), [])
    rule = PendingAckRule(pending, cast("Any", None))
    monkeypatch.setattr(SortedOrdinals, "discard", lambda *_: pytest.fail("one by one"))
    monkeypatch.setattr(SortedOrdinals, "__contains__", lambda *_: pytest.fail("one by one"))
    assert rule.next_open(7, 200_000) == 100_000
    assert pending.take(txn) is not None
    assert not len(pending.whole)
