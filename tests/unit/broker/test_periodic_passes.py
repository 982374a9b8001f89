"""A pass over all topics does nothing for one that has closed meanwhile."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from magnetar.broker.upkeep.periodic_passes import Upkeep
from magnetar.model.errors import PersistenceError
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from tests.support.loop_turns import settled
from tests.support.store_lives import SMALL, disk, numbered, opened


def test_a_topic_that_has_closed_is_left_out_and_nothing_is_begun_for_it() -> None:
    """A coroutine that is made and not awaited is a warning in the log."""
    done: list[str] = []

    def act(topic: Any) -> Any:
        async def work() -> int:
            done.append(topic.name)
            return 1

        return work()

    topics = {name: SimpleNamespace(name=name, closed=name == "closed") for name in ("one", "closed", "two")}
    upkeep = cast("Any", SimpleNamespace(_service=SimpleNamespace(topics=topics)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(Upkeep._each(upkeep, "a pass", act)) == 2
    assert done == ["one", "two"]


def _never_idle(managed: ManagedLedger, turns: int) -> None:
    """Have the open group an entry whenever a write ends, as publishers who do not wait for receipts have it."""
    left = turns

    def one_more() -> None:
        nonlocal left
        left -= 1
        if left > 0:
            managed.append(b"more", 1, None)

    managed.on_group = one_more
    managed.append(b"first", 1, None)


def _upkeep(store: LedgerStore) -> Any:
    return cast("Any", SimpleNamespace(_service=SimpleNamespace(store=store)))


def test_what_was_let_go_is_removed_while_others_never_stop_publishing() -> None:
    """A journal that is written to without a pause kept the pass, and all later ones, waiting for one."""

    async def main() -> None:
        store = opened(disk(), replace(SMALL, segment_bytes=1 << 20))
        busy, quiet = store.open_log("busy"), store.open_log("quiet")
        for entry in numbered(0, 25):
            quiet.append(entry, 1, None)
        await store.journal.drain()
        _never_idle(busy, 5000)
        await asyncio.sleep(0)
        busy.append(b"while the first is being written", 1, None)
        dropped = quiet.trim(20)
        assert dropped == 2
        before = store.journal.writes
        await Upkeep._give_back(_upkeep(store), dropped)
        assert store.journal.writes - before < 10
        assert all(span.first >= 20 for span in quiet.spans), "the trim is durable"
        busy.on_group = lambda: None
        await store.close()

    asyncio.run(main())


def test_a_trim_that_the_disk_refuses_ends_the_pass_and_stays_to_be_done() -> None:
    async def main() -> None:
        files = disk()
        store = opened(files)
        managed = store.open_log("a")
        for entry in numbered(0, 25):
            managed.append(entry, 1, None)
        await store.journal.drain()
        files.fail("append")
        dropped = managed.trim(20)
        await Upkeep._give_back(_upkeep(store), dropped)
        assert isinstance(store.journal.failing, PersistenceError)
        assert managed.spans.any_before(20)
        store.journal.roll(lambda: None, lambda error: None)
        await settled()
        assert not managed.spans.any_before(20)
        await store.close()

    asyncio.run(main())
