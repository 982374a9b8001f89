"""What Spark's Python processes import and load, before the process is forked that has it.

A fork takes over memory and one thread only. So nothing here may leave a thread running: OpenBLAS and the allocator
that Arrow does not use would, and are kept from it by `ONE_THREAD`, which must stand in the environment before. Numbers
that are drawn at random are drawn anew in each fork, by Python itself, and by numpy because `reseed` sees to it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Final

ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Variables that have to be so when numpy and pyarrow are imported."""

WORKER: Final = "pyspark.worker"
"""The module of the processes that run tasks."""
_OF_SPARK: Final = (
    WORKER,
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.streaming.python_streaming_source_runner",
)
_OURS: Final = "magnetar.spark.data_source"
_OF_TASKS: Final = ("magnetar.client.bulk.block_receiver", "magnetar.security.tls.client_tls", "encodings.idna")
"""What a connection and a range bring with them where they are made."""


def planning() -> Iterator[None]:
    """Import what processes need that plan and write down queries; stops between the pieces."""
    return _imported(*_OF_SPARK, _OURS)


def working() -> Iterator[None]:
    """Load what tasks need beside that: numba and the kernels, which are compiled where they are not kept yet."""
    try:
        from magnetar.columnar.compilation import uses
    except ImportError:
        return
    yield
    yield from _imported(*_OF_TASKS)
    yield from uses()


def _imported(*names: str) -> Iterator[None]:
    for name in names:
        # Another version of Spark has other modules, and the process that needs one will say what is wrong with it.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
        yield


def reseed() -> None:
    """Have numpy's global generator draw other numbers in each process that is forked from this one."""

    def in_child() -> None:
        if (random := sys.modules.get("numpy.random")) is not None:
            random.seed()

    os.register_at_fork(after_in_child=in_child)


def freeze() -> None:
    """Exclude what is here from garbage collection, which would copy every page of it in each fork."""
    gc.collect()
    gc.freeze()


def thread_count() -> int:
    """Return how many threads this process has, those of libraries among them."""
    return len(os.listdir("/proc/self/task"))


def preload() -> None:
    """Do all of it in a daemon of Spark's that is about to fork its workers."""
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", ONE_THREAD["JE_ARROW_MALLOC_CONF"])
    reseed()
    # What goes wrong goes wrong in the worker again, which can say it to Spark.
    with contextlib.suppress(Exception):
        for _ in itertools.chain(planning(), working()):
            pass
    freeze()
