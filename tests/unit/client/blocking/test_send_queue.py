"""How many messages of a blocking producer may wait, when its topic gains partitions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.client.blocking.send_queue import SendQueue
from magnetar.client.errors import QueueFullError
from magnetar.testing import PulsarBroker


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


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_messages_that_fail_together_are_one_line_of_the_log(
    keyed: bool, batched: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A program that ended with a thousand of them on their way wrote a thousand lines."""
    options: dict[str, Any] = {"partition_key": "k"} if keyed else {}
    with PulsarBroker(seed=1) as broker:
        with broker.client() as client:
            producer = client.create_producer("t", batching_enabled=batched)
            with broker.faults.drop("SendReceipt"):
                for _ in range(500):
                    producer.send_async(b"x", None, **options)
                client.shutdown()
        lines = [one.getMessage() for one in caplog.records if "given no callback" in one.getMessage()]
    counts = [int(line.split()[0].replace(",", "")) for line in lines]
    assert sum(counts) == 500 and len(lines) <= 3, lines
