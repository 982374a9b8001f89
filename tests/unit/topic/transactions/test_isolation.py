"""What transactions that are open keep from the consumers of a subscription."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from magnetar.broker.topic.transactions.isolation import PendingAckRule
from magnetar.transactions.pending_acks import PartialBatch, PendingAcks


def test_a_batch_goes_out_while_a_message_of_it_is_neither_acknowledged_nor_reserved() -> None:
    """The cursor has acknowledged message 0 of each batch of three (rule 9.12)."""
    pending = PendingAcks()
    pending.parts = {5: PartialBatch(5, 0b010, 3), 6: PartialBatch(6, 0b110, 3), 7: PartialBatch(7, 0b100, 3)}
    rule = PendingAckRule(pending, cast("Any", SimpleNamespace(remaining_indexes=lambda ordinal: (0b110,))))
    assert [rule.next_open(start, 9) for start in (4, 5, 6, 7)] == [4, 5, 7, 7]
    assert [rule.next_closed(start, 9) for start in (4, 5, 6, 7)] == [6, 6, 6, 9]
