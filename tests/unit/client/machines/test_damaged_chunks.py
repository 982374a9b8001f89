"""A message in chunks of which every chunk is there, and which cannot be read all the same."""

from __future__ import annotations

from magnetar.protocol import commands as c
from magnetar.protocol.entries import build_entry, metadata_of, payload_of
from tests.unit.client.machines.test_consumption import consumption, entries, message, taken


def test_all_chunks_of_a_damaged_message_are_done_with() -> None:
    """One that stayed would be in the backlog for ever, and take the room of another message."""
    one = consumption(pending_chunked_messages=1)
    *before, last = entries(b"x" * 3_000, batch=False, chunk_bytes=1_000)
    for number, part in enumerate(before):
        one.received(message(part, number))
    one.received(message(build_entry(metadata_of(last), payload_of(last)[:-1]), len(before)))
    assert not one.incomplete and not one.waiting and one.counters.rejected == 1
    acks = [each for each in one.commands() if isinstance(each, c.CommandAck)]
    assert all(each.validation_error is c.ValidationError.BatchDeSerializeError for each in acks)
    places = sorted((each.ledger, each.entry) for ack in acks for each in ack.message_ids)
    assert places == [(1, number) for number in range(len(before) + 1)]
    for number, part in enumerate(entries(b"y" * 3_000, batch=False, chunk_bytes=1_000)):
        one.received(message(part, 100 + number))
    assert taken(one) == [b"y" * 3_000]
    one.check()
