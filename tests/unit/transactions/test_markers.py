"""The entry that ends a transaction, as Apache Pulsar's brokers write it."""

from __future__ import annotations

import pytest

from magnetar.protocol.commands.ids import TxnId
from magnetar.protocol.entries import metadata_of, payload_of
from magnetar.transactions.markers import marker


@pytest.mark.parametrize(("commit", "kind"), [(True, 21), (False, 22)])
def test_a_marker_says_how_which_transaction_ended_and_nothing_else(commit: bool, kind: int) -> None:
    entry = marker(TxnId(3, 7), commit=commit, now_ms=1234)
    found = metadata_of(entry)
    assert (found.marker_type, found.txn) == (kind, TxnId(3, 7))
    assert (found.producer_name, found.sequence_id, found.publish_time) == ("", 0, 1234)
    assert payload_of(entry) == b""
