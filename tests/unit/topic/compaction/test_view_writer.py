"""What a writer of a view says of the topic's ledgers: where each begins, and where what stays of it ends."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from magnetar.broker.topic.compaction.view_writer import ViewWriter
from magnetar.compaction.compaction_cursor import CompactedLedger


class Target:
    """A log that takes everything."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def append(self, data: bytes, count: int, sent: None) -> None:
        self.counts.append(count)


def test_each_ledger_ends_after_the_last_entry_that_stays() -> None:
    async def main() -> None:
        target = Target()
        writer = ViewWriter(cast("Any", target))
        for ordinal, ledger, entry, count in ((3, 7, 1, 1), (5, 7, 3, 4), (9, 7, 7, 1), (12, 8, 0, 2), (20, 9, 5, 1)):
            await writer.write(ordinal, ledger, entry, b"data", count)
        assert writer.ledgers == [CompactedLedger(7, 2, 10), CompactedLedger(8, 12, 13), CompactedLedger(9, 15, 21)]
        assert (writer.bytes, target.counts) == (20, [1, 4, 1, 2, 1])

    asyncio.run(main())


def test_a_megabyte_is_waited_for_before_more_is_written() -> None:
    """The disk has all but a megabyte of what was written, each time counted anew."""

    class Slow(Target):
        def __init__(self) -> None:
            super().__init__()
            self.waits: list[int] = []

        def barrier(self, done: Any, failed: Any) -> None:
            self.waits.append(len(self.counts))
            done()

    async def main() -> None:
        target = Slow()
        writer = ViewWriter(cast("Any", target))
        for entry, size in enumerate((512 << 10, (512 << 10) - 1, 1, 1, 1 << 20, 300_000, 300_000, 300_000, 300_000)):
            await writer.write(entry, 7, entry, bytes(size), 1)
        assert target.waits == [3, 5, 9]

    asyncio.run(main())
