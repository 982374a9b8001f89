"""What a store finds after a kill: every durable entry, exactly once, whatever had been sealed or not."""

from __future__ import annotations

import pytest

from magnetar.model.errors import PersistenceError
from magnetar.storage.segment import index_name, segment_name
from tests.unit.storage.lives import append, disk, killed, numbered, opened, read, run


@pytest.mark.parametrize("count", range(1, 60))
def test_a_kill_at_any_distance_from_a_segment_border_loses_nothing(count: int) -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        wanted = numbered(0, count, 100)
        await append(store, managed, *wanted)
        files = await killed(store, files)
        store = opened(files)
        assert store.damage == []
        assert await read(store.open_log("a")) == wanted
        assert not [name for name in files.names() if name.startswith("quarantine")]

    run(main())
