"""Records of one sort: what they follow, and who wins when two write (``magnetar.metadata.collection``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

import pytest
from typing_extensions import override

from magnetar.metadata.collection import Collection, Key
from magnetar.model.errors import BadVersionError, ConflictError, MetadataError
from magnetar.model.policies import JsonObject
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.loop_turns import turns_of_others

KEY = ("a", "b c")
PATH = "/things/a/b%20c"


class Contested(MemoryMetadataStore):
    """Another process writes just before each of the next ``rivals`` writes."""

    def __init__(self) -> None:
        super().__init__()
        self.rivals = 0
        self.deletes = False

    async def _rival(self, path: str) -> None:
        if self.rivals:
            self.rivals -= 1
            if self.deletes:
                await super().delete(path)
            else:
                await super().put(path, json.dumps({"rival": self.rivals}).encode())

    @override
    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        await self._rival(path)
        return await super().put(path, data, expected)

    @override
    async def delete(self, path: str, expected: int | None = None) -> None:
        await self._rival(path)
        await super().delete(path, expected)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def counted(record: JsonObject | None) -> JsonObject:
    """One more than there was."""
    before = 0 if record is None else record.get("n", 0)
    assert isinstance(before, int)
    return {"n": before + 1}


@pytest.mark.parametrize("rivals", [0, 1, 5, 99])
def test_a_change_is_made_of_what_another_writer_has_left(rivals: int) -> None:
    async def main() -> None:
        store = Contested()
        collection = Collection(store, "/things", 2)
        store.rivals = rivals
        seen: list[JsonObject | None] = []

        def changed(record: JsonObject | None) -> JsonObject:
            seen.append(record)
            return {"mine": len(seen)}

        await collection.change(KEY, changed)
        assert seen == [None, *({"rival": left} for left in reversed(range(rivals)))]
        assert collection.get(*KEY) == {"mine": rivals + 1}
        assert json.loads((store.get(PATH) or pytest.fail()).data) == {"mine": rivals + 1}

    run(main())


def test_a_hundred_tries_are_enough_and_others_are_served_between_them() -> None:
    async def main() -> None:
        store = Contested()
        collection = Collection(store, "/things", 2)
        store.rivals = 1000
        calls = 0

        def changed(record: JsonObject | None) -> JsonObject:
            nonlocal calls
            calls += 1
            return {}

        with turns_of_others() as turns, pytest.raises(BadVersionError):
            await collection.change(KEY, changed)
        assert (calls, store.rivals) == (100, 900)
        assert turns.count >= 99
        assert collection.get(*KEY) == {"rival": 900}, "what the others wrote is known"

    run(main())


def test_a_change_to_nothing_removes_what_is_there_and_otherwise_does_nothing() -> None:
    async def main() -> None:
        store = Contested()
        collection = Collection(store, "/things", 2)
        await collection.change(KEY, lambda record: None)
        assert store.get(PATH) is None
        await collection.put(KEY, {"n": 1})
        store.rivals = 1
        await collection.change(KEY, lambda record: None)
        assert store.get(PATH) is None and collection.get(*KEY) is None
        assert KEY not in collection

    run(main())


def test_what_a_change_raises_ends_it_and_nothing_is_written() -> None:
    async def main() -> None:
        store = MemoryMetadataStore()
        collection = Collection(store, "/things", 2)
        await collection.put(KEY, {"n": 1})

        def refuse(record: JsonObject | None) -> JsonObject:
            raise ConflictError("no")

        with pytest.raises(ConflictError, match="no"):
            await collection.change(KEY, refuse)
        assert (store.get(PATH) or pytest.fail()).version == 0

    run(main())


def test_deleting_what_another_writer_has_removed_or_changed() -> None:
    """Gone is gone; what was changed meanwhile stays."""

    async def main() -> None:
        store = Contested()
        collection = Collection(store, "/things", 2)
        await collection.put(KEY, {"n": 1})
        store.rivals, store.deletes = 1, True
        await collection.delete(KEY)
        assert store.get(PATH) is None
        await collection.put(KEY, {"n": 2})
        store.rivals, store.deletes = 1, False
        with pytest.raises(BadVersionError):
            await collection.delete(KEY)
        assert collection.get(*KEY) == {"rival": 0}

    run(main())


@pytest.mark.parametrize("known", [True, False])
def test_who_creates_what_exists_is_told_so_whoever_made_it(known: bool) -> None:
    async def main() -> None:
        store = Contested()
        collection = Collection(store, "/things", 2)
        if known:
            await collection.put(KEY, {"n": 1})
        else:
            store.rivals = 1
        with pytest.raises(ConflictError, match="it is there"):
            await collection.create(KEY, {"n": 2}, "it is there")
        assert collection.get(*KEY) == ({"n": 1} if known else {"rival": 0})
        await collection.create(("x", "y"), {"n": 3}, "it is there")
        assert collection.get("x", "y") == {"n": 3}

    run(main())


@pytest.mark.parametrize("data", [b"{", b"[]", b"1", b"null", b"\xff"])
def test_a_record_that_cannot_be_read_leaves_in_force_what_was_known_and_stops_a_start(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        store = MemoryMetadataStore()
        news: list[Key] = []
        collection = Collection(store, "/things", 2, news.append)
        await collection.put(KEY, {"n": 1})
        assert news == [KEY]
        await store.put(PATH, data)
        assert (collection.get(*KEY), news) == ({"n": 1}, [KEY])
        assert PATH in caplog.text and "what was known before stays in force" in caplog.text
        with pytest.raises(MetadataError, match=f"metadata record {PATH} is not"):
            Collection(store, "/things", 2)

    run(main())


def test_only_records_of_its_depth_are_followed_and_all_of_them_are_loaded() -> None:
    async def main() -> None:
        store = MemoryMetadataStore()
        news: list[Key] = []
        collection = Collection(store, "/things", 2, news.append)
        for path in ("/things/a", "/things/a/b%2Fc/d", "/others/a/b", "/things/a/b%2Fc"):
            await store.put(path, b'{"n": 1}')
        assert news == [("a", "b/c")]
        await store.put("/things/a/a", b'{"n": 2}')
        await store.put("/things/z/a", b'{"n": 3}')
        again = Collection(store, "/things", 2)
        for one in (collection, again):
            assert list(one.below()) == [("a", "a"), ("a", "b/c"), ("z", "a")]
            assert list(one.below("a")) == [("a", "a"), ("a", "b/c")]
            assert one.get("z", "a") == {"n": 3}
        await store.delete("/things/z/a")
        assert ("z", "a") not in collection and news[-1] == ("z", "a")

    run(main())


def test_two_that_count_together_count_each_time() -> None:
    async def main() -> None:
        store = MemoryMetadataStore()
        one, other = Collection(store, "/things", 2), Collection(store, "/things", 2)
        await asyncio.gather(*(collection.change(KEY, counted) for collection in (one, other) * 20))
        assert one.get(*KEY) == other.get(*KEY) == {"n": 40}

    run(main())
