"""Taking over a view that a job computed: the loop goes on meanwhile, and places that cannot be are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.topic.compaction.view_adoption import adopt
from magnetar.compaction.view_entries import pack
from magnetar.model.errors import ConflictError
from tests.support.loop_turns import turns_of_others

LOG = cast(
    "Any",
    SimpleNamespace(name="t", first=0, exact_ordinal=lambda place: place.entry if place.ledger == 1 else None),
)


class Writer:
    def __init__(self) -> None:
        self.written: list[int] = []
        self.counts: list[int] = []

    async def write(self, ordinal: int, ledger: int, entry: int, data: bytes, count: int) -> None:
        self.written.append(ordinal)
        self.counts.append(count)

    async def durable(self) -> None: ...


async def one_piece(*ordinals: int, ledger: int = 1) -> AsyncIterator[tuple[list[bytes], None]]:
    yield [pack(ordinal, ledger, ordinal, b"x") for ordinal in ordinals], None


def test_others_have_their_turn_while_a_large_piece_is_taken_over() -> None:
    async def main() -> None:
        writer = Writer()
        with turns_of_others() as turns:
            await adopt(LOG, None, 10_000, one_piece(*range(10_000)), cast("Any", writer))
        assert len(writer.written) == 10_000
        assert turns.count >= 40

    asyncio.run(main())


@pytest.mark.parametrize(
    "pieces",
    [one_piece(1, 1), one_piece(2, 1), one_piece(10), one_piece(1, ledger=2)],
    ids=["twice", "back", "end", "ledger"],
)
def test_places_that_cannot_be_are_refused(pieces: Any) -> None:
    with pytest.raises(ConflictError, match="to be kept"):
        asyncio.run(adopt(LOG, None, 10, pieces, cast("Any", Writer())))


@pytest.mark.parametrize(("counts", "written"), [([3, 1, 5], [3, 1, 5]), (None, [1, 1, 1])])
def test_each_entry_has_the_messages_that_the_job_counted(counts: list[int] | None, written: list[int]) -> None:
    async def piece() -> AsyncIterator[tuple[list[bytes], list[int] | None]]:
        yield [pack(ordinal, 1, ordinal, b"x") for ordinal in (2, 4, 7)], counts

    writer = Writer()
    asyncio.run(adopt(LOG, None, 10, piece(), cast("Any", writer)))
    assert (writer.written, writer.counts) == ([2, 4, 7], written)
