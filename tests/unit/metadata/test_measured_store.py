"""What /metrics says of writes of metadata: how many, how long they took and how they ended."""

from __future__ import annotations

import asyncio
from bisect import bisect_left

import pytest

from magnetar.metadata import measured_store
from magnetar.metadata.measured_store import MeasuredStore
from magnetar.model.errors import BadVersionError
from magnetar.testing.memory_metadata import MemoryMetadataStore

APACHE_PULSARS = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The bounds of its histogram ``pulsar_metadata_store_ops_latency_ms``, which dashboards name as ``le``."""


def written(monkeypatch: pytest.MonkeyPatch, milliseconds: float) -> MeasuredStore:
    """A store whose one write took so long."""
    moments = iter((100.0, 100.0 + milliseconds / 1000))
    monkeypatch.setattr(measured_store, "perf_counter", lambda: next(moments))
    store = MeasuredStore(MemoryMetadataStore())
    asyncio.run(_put(store))
    return store


async def _put(store: MeasuredStore) -> None:
    await store.put("/a", b"12345")


@pytest.mark.parametrize("bound", APACHE_PULSARS)
@pytest.mark.parametrize("beside", [-0.25, 0.25])
def test_a_write_counts_below_the_next_of_apache_pulsars_bounds(
    monkeypatch: pytest.MonkeyPatch, bound: int, beside: float
) -> None:
    store = written(monkeypatch, bound + beside)
    (buckets,) = store.operations.values()
    assert [at for at, count in enumerate(buckets.counts) if count] == [bisect_left(APACHE_PULSARS, bound + beside)]
    assert buckets.sum == pytest.approx(bound + beside)


def test_writes_are_told_apart_by_what_they_do_and_how_they_end() -> None:
    async def main() -> None:
        store = MeasuredStore(MemoryMetadataStore())
        assert (store.operations, store.put_bytes) == ({}, 0), "nothing is said of what never was"
        version = await store.put("/a", b"12345")
        with pytest.raises(BadVersionError):
            await store.put("/a", b"never there", version + 7)
        await store.put("/b", b"12")
        await store.delete("/a", version)
        with pytest.raises(BadVersionError):
            await store.delete("/b", 77)
        assert {name: buckets.count for name, buckets in store.operations.items()} == {
            ("put", "success"): 2, ("put", "fail"): 1, ("del", "success"): 1, ("del", "fail"): 1,
        }  # fmt: skip
        assert store.put_bytes == 7, "of what was written"

    asyncio.run(main())
