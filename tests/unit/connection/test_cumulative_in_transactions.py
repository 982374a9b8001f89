"""What a cumulative acknowledgement in a transaction names, for ids that exist and ids that do not (rules 5.7.4,
5.7.13, 9.12)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.handlers import transaction_commands
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.model.ids import Position
from magnetar.protocol import commands as c
from magnetar.transactions.pending_acks import PartialBatch
from tests.support.subscription_fakes import LEDGER_ENTRIES
from tests.support.subscription_stand import Stand


def until(stand: Stand, message_id: c.MessageIdData) -> PartialBatch | None:
    log: Any = stand.log
    held = SimpleNamespace(
        exact=lambda one: log.exact_ordinal(Position(one.ledger, one.entry)),
        before=lambda one: OpenConsumer.before(cast(Any, SimpleNamespace(log=log)), one),
    )
    return transaction_commands._until(cast(Any, held), stand.subscription, message_id)


@pytest.mark.parametrize("ordinal", [0, 1, LEDGER_ENTRIES - 1, LEDGER_ENTRIES, LEDGER_ENTRIES + 2])
def test_an_id_that_exists_is_its_entry(ordinal: int) -> None:
    stand = Stand()
    stand.append(*[4] * (LEDGER_ENTRIES + 3))
    message_id = c.MessageIdData(*stand.log.position(ordinal))
    assert until(stand, message_id) == PartialBatch(ordinal, 0, 0)
    batched = message_id._replace(ack_set=(0b1100,), batch_size=4)
    assert until(stand, batched) == PartialBatch(ordinal, 0b0011, 4)


def test_an_id_that_does_not_exist_is_what_stands_before_its_place() -> None:
    stand = Stand()
    stand.append_many(LEDGER_ENTRIES + 3)
    stand.log.first = 10
    assert until(stand, c.MessageIdData(0, 4)) == PartialBatch(9, 0, 0)
    assert until(stand, c.MessageIdData(0, 4, ack_set=(1,), batch_size=2)) == PartialBatch(9, 0, 0)


def test_an_id_behind_all_entries_is_none_of_them() -> None:
    stand = Stand()
    stand.append_many(LEDGER_ENTRIES + 3)
    assert until(stand, c.MessageIdData(1, 3)) is None
    assert until(stand, c.MessageIdData(7, 0, ack_set=(1,), batch_size=2)) is None
