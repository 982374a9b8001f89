"""Offsets as users write them, resolved by a broker to read positions of one topic-partition."""

from __future__ import annotations

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.bulk.positions import last_position, position_at_time, position_of_index, written_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.runtime.clock import SystemClock
from magnetar.spark.options.offsets import IndexOffset, NamedOffset, OffsetSpec, TimeOffset


def resolve(lookup: Lookup, name: str, at: OffsetSpec) -> ReadPosition:
    """Return the position in one topic-partition of an offset that the user wrote."""
    if isinstance(at, TimeOffset):
        return position_at_time(lookup, name, at.ms, SystemClock().now_ms())
    if isinstance(at, IndexOffset):
        return position_of_index(lookup, name, at.number)
    if isinstance(at, NamedOffset):
        return START if at is NamedOffset.EARLIEST else last_position(lookup, name)
    return at


def resolve_end(lookup: Lookup, name: str, at: OffsetSpec, *, strict: bool) -> ReadPosition:
    """Resolve the end of a batch read: never after what can be read now (the last stable position).

    Between there and a later position that was asked for are markers, aborted messages and open transactions: nothing
    that a reader gets. DataLossError if the position is after everything that was ever written, unless that may be.
    """
    position = resolve(lookup, name, at)
    if not isinstance(at, ReadPosition) or position <= (last := last_position(lookup, name)):
        return position
    if strict and position > (written := written_position(lookup, name)):
        raise DataLossError(
            f"{name}: endingOffsets says {position}, and the topic ends at {written}: it was made anew, or the "
            "position is another topic's; set failOnDataLoss=false to read what is there"
        )
    return last


def resolve_start(lookup: Lookup, name: str, at: OffsetSpec, *, strict: bool) -> ReadPosition:
    """Resolve the start of a read. DataLossError if it is after everything that was ever written, unless that may be:
    nothing would come, and nothing would say why.

    A time may lie ahead, and so may the position and the index of the next message.
    """
    position = resolve(lookup, name, at)
    if not strict:
        return position
    if isinstance(at, ReadPosition):
        written = end_if_beyond(lookup, name, position, last_position(lookup, name))
        what = f"{position}, and the topic ends at {written}"
    elif isinstance(at, IndexOffset) and at.number and position >= (end := last_position(lookup, name)):
        # The message before it is there, then it is the next one.
        written = end if resolve(lookup, name, IndexOffset(at.number - 1)) >= end else None
        what = f"the index {at.number}, and the topic has fewer messages: it ends at {end}"
    else:
        return position
    if written is None:
        return position
    raise DataLossError(
        f"{name}: startingOffsets says {what}. It was made anew, or this is of another topic; set failOnDataLoss=false "
        "to wait for what comes after it"
    )


def end_if_beyond(lookup: Lookup, name: str, position: ReadPosition, last: ReadPosition) -> ReadPosition | None:
    """Return where the topic ends, if ``position`` is after everything that was ever written; ``last`` is what can be
    read."""
    if position <= last:
        return None
    return written if position > (written := written_position(lookup, name)) else None
