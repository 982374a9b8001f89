"""What is said of messages that are too large for a broker."""

from __future__ import annotations

import pytest

from magnetar.client.errors import MessageTooLargeError
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication, PublicationLimits


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
