"""Messages whose values are their sequence ids, sent by one producer."""

from __future__ import annotations

from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from tests.support.batch_writer import BatchWriter


def publish_numbers(url: str, first: int, stop: int, *, batch: int = 1, topic: str) -> None:
    """Publish the numbers from ``first`` to ``stop`` as values, which are their sequence ids too."""
    numbers = range(first, stop)
    with Lookup(url, timeout=10) as lookup, Producer(lookup, topic, name="numbers") as producer:
        keys = [b"k%d" % (number % 7) for number in numbers]
        writer = BatchWriter(producer.name, max_messages=batch)
        for one in writer.pack(1_700_000_000_000, [b"%d" % number for number in numbers], numbers, keys):
            producer.send(*one)
        producer.flush()
