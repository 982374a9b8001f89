"""Messages that are in no batch although the producer makes batches."""

from __future__ import annotations

import pytest

from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import metadata_of, payload_of, split_batch


@pytest.mark.parametrize(
    "alone", [OutgoingMessage(b"2", deliver_at=5_000), OutgoingMessage(b"2", replicate_to=("west",))]
)
def test_what_is_not_for_everybody_at_once_goes_alone(alone: OutgoingMessage) -> None:
    """The batch before it goes first, to keep the order (rule 3.5.4)."""
    queue = Publication("t", EntryMaker("p"), PublicationLimits(batching=True), 1 << 20)
    queue.opened(0)
    for number, message in enumerate([OutgoingMessage(b"0"), OutgoingMessage(b"1"), alone, OutgoingMessage(b"3")]):
        queue.add(message, number, 0.0, 1)
    queue.close_batches(0.0, 1)
    found = Decoder(1 << 20).feed(b"".join(queue.frames(1 << 20)))
    entries = [send.entry for send in found if isinstance(send, c.CommandSend)]
    assert [metadata_of(one).num_messages_in_batch for one in entries] == [2, None, 1]
    assert [value for _, value in split_batch(payload_of(entries[0]), 2)] == [b"0", b"1"]
    assert payload_of(entries[1]) == b"2"
    assert metadata_of(entries[1]).deliver_at_time == (alone.deliver_at or None)
