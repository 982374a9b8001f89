"""The place that a seek names, as its command carries it, and what becomes of the seek."""

from __future__ import annotations

import asyncio

from magnetar.client.errors import AlreadyClosedError
from magnetar.client.machines.acknowledgement import ack_set_of
from magnetar.client.machines.message_id import MAX_LONG, MessageId
from magnetar.protocol import commands as c


def seek_command(place: MessageId | int, *, inclusive: bool) -> tuple[c.CommandSeek, MessageId | None]:
    """Return the command of a seek to a message or a publish time, without the ids of who sends it, and the message."""
    if isinstance(place, int):
        return c.CommandSeek(0, 0, message_publish_time=place), None
    return c.CommandSeek(0, 0, message_id=seek_data(place, inclusive=inclusive)), place


def seek_data(message_id: MessageId, *, inclusive: bool) -> c.MessageIdData:
    """Return where a broker goes on: with the message if ``inclusive``, otherwise after it.

    A broker continues with the message that a seek names (rule 5.9.1), within a batch with the first one of the ack set
    (rule 5.9.6), so the seek names the position after the message. The official clients name the message and drop it
    when it comes, which leaves it in the backlog.
    """
    ledger, entry = message_id.ledger_id(), message_id.entry_id()
    index, size = message_id.batch_index(), message_id.batch_size
    if ledger < 0 or entry == MAX_LONG:  # the earliest, the latest
        return c.MessageIdData(ledger, entry, message_id.partition())
    if inclusive and message_id.chunks:
        return c.MessageIdData(*message_id.chunks[0])
    first = index if inclusive else index + 1
    if not inclusive and (index < 0 or first == size):
        return c.MessageIdData(ledger, entry + 1, message_id.partition())
    data = c.MessageIdData(ledger, entry, message_id.partition())
    if 0 < first < size:
        left = ((1 << size) - 1) & ~((1 << first) - 1)
        return data._replace(batch_index=first, ack_set=ack_set_of(left))
    return data


async def sought(moving: asyncio.Task[None], topic: str) -> None:
    """Wait for a seek, which goes on if who waits is cancelled. Raises AlreadyClosedError if closing ended it."""
    await asyncio.wait([moving])
    if moving.cancelled():
        raise AlreadyClosedError(f"{topic}: the consumer was closed before the seek was answered")
    moving.result()
