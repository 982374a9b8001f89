"""What is said of messages that are too large for a broker."""

from __future__ import annotations

import pytest

from magnetar.client.errors import MessageTooLargeError
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits


def test_what_chunks_do_not_help_is_said() -> None:
    """Each chunk has all properties and keys; to turn chunking on, or on again, would change nothing."""
    for chunking in (False, True):
        queue = Publication("t", EntryMaker("p"), PublicationLimits(batching=False, chunking=chunking), 1_000)
        queue.opened(0)
        for large in (
            OutgoingMessage(b"x", properties=(("k", "v" * 2_000),)),
            OutgoingMessage(b"x", key="k" * 2_000),
        ):
            with pytest.raises(
                MessageTooLargeError, match="cannot be chunked: make them smaller, or raise maxM"
            ) as info:
                queue.add(large, "token", 0.0, 0)
            assert info.value.size > 2_000 and "turn chunking on" not in str(info.value)


def test_batches_keep_to_a_smaller_limit() -> None:
    """What is open when the limit becomes smaller, and what comes after it."""
    queue = Publication("t", EntryMaker("p"), PublicationLimits(batching=True), 50_000)
    queue.opened(0)
    for _ in range(3):
        queue.add(OutgoingMessage(b"x" * 6_000), None, 0.0, 1)
    queue.lost()
    found = queue.limit_to(10_000, 0.0, 1)
    assert [(one.messages, size > 18_000) for one, size in found] == [(3, True)] and queue.idle
    for _ in range(3):
        queue.add(OutgoingMessage(b"x" * 6_000), None, 0.0, 1)
    queue.close_batches(0.0, 1)
    queue.opened(1)
    assert [one.messages for one in queue._pending] == [1, 1, 1]
    assert queue.limit_to(50_000, 0.0, 1) == [] and queue.batch_bytes > 10_000
    queue.check()
