"""What a fork has: every module and kernel that the first task uses, one thread, and random numbers of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.columnar.entries.message_columns import message_columns
from magnetar.columnar.entries.packer import Packer
from tests.support.live_broker import LiveBroker, live_broker

TOPIC = "persistent://public/default/cold"
_FIRST_TASK = """
import json, os, sys
from magnetar.spark.forks.preload import ONE_THREAD, preload, thread_count
os.environ.update(ONE_THREAD)
preload()
from magnetar.columnar.kernels.compiled import compilations, forms
modules, compiled, loaded, threads = set(sys.modules), len(compilations()), forms(), thread_count()

from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.reading.read_task import read_task
url, topic, metadata = sys.argv[1:]
options = source_options({"service.url": url, "topic": topic, "metadata": metadata})
end = ReadPosition(*json.loads(sys.stdin.read()))
rows = sum(one.num_rows for one in read_task(options, (Range(topic, START, end),)))
print(json.dumps({
    "rows": rows, "threads": threads, "imported": sorted(set(sys.modules) - modules),
    "compiled": len(compilations()) - compiled, "loaded": forms() - loaded,
}))
"""
_DRAWING = """
import os
from magnetar.spark.forks.preload import reseed
reseed()
import numpy.random
for _ in range(2):
    if not os.fork():
        print(numpy.random.random(), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with live_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture(scope="module")
def end(broker: LiveBroker) -> tuple[int, ...]:
    """A topic with a batch of a hundred rows, and its end."""
    from magnetar.client.bulk.positions import last_position

    texts = pa.array([b"x" * 100] * 100, pa.binary())
    with Lookup(broker.url) as lookup:
        with Producer(lookup, TOPIC) as producer:
            numbers = np.arange(100)
            for one in Packer(producer.name).pack(1, message_columns(texts, texts), numbers, numbers):
                producer.send(*one)
            producer.flush()
        return tuple(last_position(lookup, TOPIC))


@pytest.mark.parametrize("metadata", ["none", "all"])
def test_the_first_task_of_a_fork_imports_and_compiles_nothing(
    broker: LiveBroker, end: tuple[int, ...], metadata: str
) -> None:
    line = [sys.executable, "-c", _FIRST_TASK, broker.url, TOPIC, metadata]
    done = subprocess.run(line, input=json.dumps(end), stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    assert found == {"rows": 100, "threads": 1, "imported": [], "compiled": 0, "loaded": 0}


def test_forks_draw_numbers_of_their_own() -> None:
    said = subprocess.run([sys.executable, "-c", _DRAWING], capture_output=True, text=True, check=True).stdout
    assert len(set(said.split())) == 2
