"""The offloader when a thread, a pass or the broker ends or breaks in the middle."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.offloader import Offloader
from magnetar.config.settings import Settings
from magnetar.model.errors import PersistenceError
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.storage.ledgers.archive import Offload
from tests.support.memory_object_store import MemoryObjectStore
from tests.support.subscription_stand import FakeClock


class Store:
    """A store in which no ledger is copied."""

    def __init__(self) -> None:
        self.archive_threads = ThreadPoolExecutor(2)
        self.discarded: dict[str, Offload] = {}
        self.journal = self
        self.failing: PersistenceError | None = None

    def barrier(self, done: Any, failed: Any) -> None:
        if self.failing is None:
            done()
        else:
            failed(self.failing)

    def copy_deleted(self, copy: Offload) -> None:
        del self.discarded[copy.key]

    def discard(self, *copies: Offload) -> None:
        self.discarded.update((copy.key, copy) for copy in copies)


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    yield store
    store.archive_threads.shutdown()


def made(store: Store, place: MemoryObjectStore, clock: FakeClock) -> Offloader:
    archive = ParquetArchive(lambda url: place)
    return Offloader(cast("Any", store), archive, Settings(offloadUrl=place.url), clock, Random(1))


def copy(name: str) -> Offload:
    return Offload("file:///memory", name, "", 1, 1, 0, 0)


def test_what_a_thread_works_on_is_left_alone_until_it_ended(store: Store) -> None:
    async def main() -> None:
        offloading = made(store, MemoryObjectStore(), FakeClock())
        begun, go_on, ended = threading.Event(), threading.Event(), []

        def work() -> None:
            begun.set()
            go_on.wait(10)
            ended.append(True)

        async def step() -> None:
            try:
                await offloading._thread(work)
            finally:
                assert ended, "the draft would be abandoned under the writer"

        task = asyncio.create_task(step())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.sleep(0.02)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_pass_goes_on_behind_one_object_that_breaks_in_an_unforeseen_way(store: Store) -> None:
    async def main() -> None:
        place = MemoryObjectStore()
        offloading = made(store, place, FakeClock())
        managed = SimpleNamespace(
            deleted=False, name="t", table=SimpleNamespace(ledgers=[SimpleNamespace(id=1, offload=copy("x"))])
        )
        managed.table.of_id = lambda number: managed.table.ledgers[0]
        topic = SimpleNamespace(
            closed=False, log=managed, name=SimpleNamespace(fqn="t"),
            policies=SimpleNamespace(offload_deletion_lag_ms=0, offload_threshold=-1, offload_threshold_s=-1),
        )  # fmt: skip
        offloading._archive.check = lambda *_: 1 // 0  # type: ignore[method-assign]  # a fault of pyarrow's, say
        place.objects["old"] = b"x"
        store.discard(copy("old"))
        assert await offloading.look([cast("Any", topic)]) == 0
        assert place.deleted == ["old"]
        assert offloading.counters.failures == 1

    asyncio.run(main())


def test_while_the_disk_fails_nothing_is_deleted_and_the_pass_ends_as_ever(store: Store) -> None:
    async def main() -> None:
        place, clock = MemoryObjectStore(), FakeClock()
        offloading = made(store, place, clock)
        place.objects["old"] = b"x"
        store.discard(copy("old"))
        store.failing = PersistenceError("the disk is full")
        assert await offloading.look([]) == 0
        assert place.objects
        store.failing = None
        clock.ms += 60_000
        await offloading.look([])
        assert not place.objects and not store.discarded

    asyncio.run(main())


def test_a_place_that_does_not_answer_is_asked_once_a_pass_and_one_object_keeps_no_other(store: Store) -> None:
    async def main() -> None:
        place, clock = MemoryObjectStore(), FakeClock()
        offloading = made(store, place, clock)
        names = [f"o{i}" for i in range(5)]
        place.objects.update(dict.fromkeys(names, b"x"))
        store.discard(*map(copy, names))
        place.failing = True
        await offloading.look([])
        assert offloading.counters.failures == 1
        place.failing = False
        await offloading.look([])
        assert place.deleted == names[1:], "the first one is tried again later"
        clock.ms += 60_000
        await offloading.look([])
        assert not store.discarded

    asyncio.run(main())


def test_what_is_needed_again_when_its_turn_comes_is_not_deleted(store: Store) -> None:
    async def main() -> None:
        place = MemoryObjectStore()
        offloading = made(store, place, FakeClock())
        place.objects["again"] = b"x"
        store.discard(copy("again"))
        await offloading._one.acquire()  # an adoption of that very object is under way
        looking = asyncio.create_task(offloading.look([]))
        await asyncio.sleep(0)
        store.discarded.clear()
        offloading._one.release()
        await looking
        assert place.objects

    asyncio.run(main())
