"""The place that a seek names, as its command carries it."""

from __future__ import annotations

from magnetar.client.machines.acknowledgement import ack_set_of
from magnetar.client.machines.message_id import MessageId
from magnetar.protocol import commands as c


def seek_data(message_id: MessageId) -> c.MessageIdData:
    """Within a batch the ack set says where (rule 5.9.6)."""
    index, size = message_id.batch_index(), message_id.batch_size
    if message_id.chunks:
        return c.MessageIdData(*message_id.chunks[0])
    data = c.MessageIdData(message_id.ledger_id(), message_id.entry_id(), message_id.partition())
    if index > 0 and size > index:
        left = ((1 << size) - 1) & ~((1 << index) - 1)
        return data._replace(batch_index=index, ack_set=ack_set_of(left))
    return data
