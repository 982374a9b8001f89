"""How many messages of a blocking producer may wait, when its topic gains partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.client.blocking.send_queue import SendQueue
from magnetar.client.errors import QueueFullError


def test_more_partitions_have_room_for_more_messages() -> None:
    """The bound stayed that of the partitions which were there at the beginning."""
    thread: Any = SimpleNamespace(
        refusal=None, inside=False, ended=False, gives_up_with=lambda _: None, post=lambda _: None
    )
    memory = SimpleNamespace(free=1 << 30, crossed=0, crossing=0, floor=0, full=False, limit=0)
    producer: Any = SimpleNamespace(
        options=SimpleNamespace(block_if_queue_full=False, limits=SimpleNamespace(pending_messages=2)),
        partitions=1,
        memory=memory,
        topic=lambda: "t",
        producer_name=lambda: "p",
    )
    queue = SendQueue(thread, producer)
    for _ in range(2):
        queue.add(b"x")
    with pytest.raises(QueueFullError):
        queue.add(b"x")
    producer.partitions = 2
    for _ in range(2):
        queue.add(b"x")
    with pytest.raises(QueueFullError):
        queue.add(b"x")
