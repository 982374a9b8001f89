"""What becomes of a message whose entries are refused in part, or are larger than a broker takes."""

from __future__ import annotations

import random

import pytest

from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType, decompress
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import metadata_of, payload_of, split_batch


def sends(frames: list[bytes]) -> list[c.CommandSend]:
    return [one for one in Decoder(1 << 28).feed(b"".join(frames)) if isinstance(one, c.CommandSend)]


def receipt(send: c.CommandSend) -> c.CommandSendReceipt:
    return c.CommandSendReceipt(send.producer_id, send.sequence_id, c.MessageIdData(1, 0), 0)


@pytest.mark.parametrize("written", [1_000, 1 << 20])
def test_a_message_of_which_a_chunk_is_refused_is_not_stored(written: int) -> None:
    """The receipts of its other chunks say nothing about it; those after it are written as ever."""
    queue = Publication("t", EntryMaker("p"), PublicationLimits(chunking=True), 1_000)
    queue.opened(0)
    fate = queue.add(OutgoingMessage(b"x" * 3_000), "token", 0.0, 0)
    later = queue.add(OutgoingMessage(b"later"), "later", 0.0, 0)
    found = sends(queue.frames(written))
    queue.receipted(receipt(found[0]))
    failed = queue.refused(found[1].sequence_id)
    assert [one.fate for one in failed if one.messages] == [fate]
    queue.check()
    done = []
    for send in found[2:] + sends(queue.frames(1 << 20)):
        done.append(queue.receipted(receipt(send)).fate)
        queue.check()
    assert fate not in done and done[-1] is later and queue.idle


@pytest.mark.parametrize("kind", [CompressionType.LZ4, CompressionType.SNAPPY, CompressionType.ZLIB])
def test_no_batch_is_larger_than_a_broker_takes(kind: CompressionType) -> None:
    """Compression makes what cannot be compressed larger."""
    limits = PublicationLimits(batching=True, batch_bytes=5 << 20, batch_messages=0)
    queue = Publication("t", EntryMaker("p", kind), limits, 5 << 20)
    queue.opened(0)
    value = random.Random(1).randbytes(queue.batch_bytes - OutgoingMessage(b"").weight)
    queue.add(OutgoingMessage(value), None, 0.0, 0)
    queue.close_batches(0.0, 0)
    (send,) = sends(queue.frames(1 << 28))
    assert len(send.entry) <= 5 << 20
    metadata = metadata_of(send.entry)
    plain = decompress(metadata.compression, payload_of(send.entry), metadata.uncompressed_size, 5 << 20)
    assert [one for _, one in split_batch(plain, 1)] == [value]
