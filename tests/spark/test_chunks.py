"""Large messages that the sink sends in chunks, by a task that ends between them and is repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.client.bulk.positions import last_position
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import START
from magnetar.pipelines.redrive import messages
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.sink.task_sink import Numbering, Published, TaskSink
from tests.support.encrypted_entries import pair
from tests.support.live_broker import LiveBroker

pytestmark = pytest.mark.spark
TOPIC = "persistent://public/default/chunks-{}-partition-0"


class EndedError(Exception):
    """The task."""


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_task_that_ends_between_chunks(
    encrypted: bool, broker: LiveBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task ends before the first chunk, after each of three, or after a small message: everything is there once, in
    order."""
    for name, text in zip(("private", "public"), pair(), strict=True):
        (tmp_path / f"{name}.pem").write_text(text)
    topic = TOPIC.format(encrypted)
    # Nothing that compression could make small.
    large = random.Random(1).randbytes(11 << 20)
    values = [b"a", large, b"b", large[::-1], b"c"]
    target = {"service.url": broker.url, "topic": topic.rpartition("-partition-")[0]}
    options = {**target, "pulsar.producer.chunkingEnabled": "true"}
    if encrypted:
        options["encryption.publicKey"] = str(tmp_path / "public.pem")
        target["decryption.privateKey"] = str(tmp_path / "private.pem")

    def rows() -> Iterator[Any]:
        for some in (values[:2], values[2:]):
            columns = [pa.array(some, pa.binary()), pa.array([topic] * len(some), pa.string())]
            yield pa.RecordBatch.from_arrays(columns, ["value", "__topic"])

    take = Producer._take
    left = 0

    def limited(producer: Producer, waiting: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            producer.flush()
            raise EndedError
        take(producer, waiting)

    monkeypatch.setattr(Producer, "_take", limited)
    for entries in (1, 1, 2, 3, 2):
        left = entries
        with pytest.raises(EndedError):
            TaskSink(sink_options(options), Numbering("spark.q.0", 4)).run(rows())
    left = 100
    assert TaskSink(sink_options(options), Numbering("spark.q.0", 4)).run(rows()) == Published(2, 3)
    with Lookup(broker.url) as lookup:
        found = list(messages(lookup, topic, START, last_position(lookup, topic), source_options(target)))
    assert [one.value for one in found] == values
