"""Versions of schemas as they are kept: numbers, durability, what a refused purge leaves (rules 10.3, 10.11)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from magnetar.metadata.schemas import SchemaStore
from magnetar.metadata.store import RecordWrite
from magnetar.model.errors import BadVersionError, MetadataError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaId, SchemaType, SchemaVersion
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once
from tests.support.late_metadata import made_late

ID = SchemaId("public", "default", "t")
STRING = SchemaDefinition(SchemaType.STRING)
BINARY = SchemaDefinition(SchemaType.KEY_VALUE, b"\0\0\0\0\xff\xfe", {"key.schema.type": "BYTES", "ü": "\n"})


def test_whose_schema_it_is() -> None:
    """All partitions share the schema of their topic (rule 10.2)."""
    for name in ("t", "t-partition-3", "non-persistent://public/default/t"):
        assert SchemaId.of(TopicName.parse(name)) == ID
    strange = SchemaId.of(TopicName.parse("persistent://public/default/a b%2F"))
    assert str(strange) == "public/default/a%20b%252F"


def test_versions_outlive_the_process(tmp_path: Path) -> None:
    strange = SchemaId("public", "default", "a%20b%252F")
    path = str(tmp_path)
    database = MetadataLog(OsFileSystem(path))
    store = SchemaStore(database)
    made = [at_once(store.append(each, BINARY, 5)) for each in (ID, strange)]
    for _ in range(11):
        made.append(at_once(store.append(ID, STRING, 6)))
    made.append(at_once(store.append(ID, SchemaDefinition(SchemaType.NONE), 7, deleted=True)))
    at_once(database.close())
    again = MetadataLog(OsFileSystem(path))
    store = SchemaStore(again)
    assert list(store.history(ID)) == [each for each in made if each is not made[1]]
    assert [each.version for each in store.history(ID)] == list(range(13))
    assert store.history(strange) == (made[1],)
    assert store.of_namespace("public", "default") == [strange, ID]
    assert at_once(store.append(ID, STRING, 8)).version == 13
    at_once(again.close())


def test_a_version_is_never_given_twice() -> None:
    """Two brokers on one store: each sees what the other gave, and of two at the same moment one is refused."""

    async def both() -> None:
        metadata = made_late(MemoryMetadataStore(), lambda: asyncio.sleep(0))
        one, other = SchemaStore(metadata), SchemaStore(metadata)
        assert other.history(ID) == ()
        await one.append(ID, STRING, 0)
        assert (await other.append(ID, BINARY, 1)).version == 1
        outcomes = await asyncio.gather(one.append(ID, STRING, 2), other.append(ID, BINARY, 2), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [SchemaVersion, BadVersionError]
        assert [version.definition for version in other.history(ID)] == [STRING, BINARY, STRING]

    asyncio.run(both())


def test_a_failing_write_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = MemoryMetadataStore()
    store = SchemaStore(metadata)
    at_once(store.append(ID, STRING, 0))

    def full(path: str, data: bytes, expected: int | None = None) -> int:
        raise MetadataError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(metadata, "put", full)
        with pytest.raises(MetadataError):
            at_once(store.append(ID, BINARY, 0))
    assert [each.version for each in store.history(ID)] == [0]
    assert at_once(store.append(ID, BINARY, 0)).version == 1


def test_a_purge_that_is_refused_leaves_all_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = MemoryMetadataStore()
    store = SchemaStore(metadata)
    before = tuple(at_once(store.append(ID, STRING, 0)) for _ in range(3))

    async def full(writes: Sequence[RecordWrite]) -> None:
        assert len(writes) == 3
        raise MetadataError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(metadata, "write", full)
        with pytest.raises(MetadataError):
            at_once(store.purge(ID))
    assert store.history(ID) == SchemaStore(metadata).history(ID) == before
    at_once(store.purge(ID))
    assert store.history(ID) == SchemaStore(metadata).history(ID) == ()
    at_once(store.purge(ID))


def test_a_damaged_record_is_named() -> None:
    metadata = MemoryMetadataStore()
    for path, data in (("a/0", b"{"), ("b/0", b"{}"), ("c/x", b"{}"), ("d/0", b'{"type":"NOPE"}')):
        at_once(metadata.put(f"/schemas/public/default/{path}", data))
        with pytest.raises(MetadataError, match=path):
            SchemaStore(metadata).history(SchemaId("public", "default", path[0]))


def test_memory_is_bounded() -> None:
    metadata = MemoryMetadataStore()
    store = SchemaStore(metadata, cached_bytes_max=100_000)
    ids = [SchemaId("public", "default", f"t{i}") for i in range(100)]
    for each in ids:
        at_once(store.append(each, SchemaDefinition(SchemaType.AVRO, b"x" * 9_000), 0))
    assert all(len(store.history(each)) == 1 for each in ids)
    assert 5 < len(store._held) < 12
    assert store._held_bytes <= 100_000


class Model(RuleBasedStateMachine):
    """Against a list per schema; a new store on the same records stands for a restart."""

    def __init__(self) -> None:
        super().__init__()
        self.metadata = MemoryMetadataStore()
        self.store = SchemaStore(self.metadata, cached_bytes_max=2_000)
        self.expected: dict[SchemaId, list[int]] = {}

    ids = st.sampled_from([SchemaId("public", "default", name) for name in ("a", "b", "a%2Fb", "1")])

    @rule(schema=ids, size=st.integers(0, 900), deleted=st.booleans())
    def append(self, schema: SchemaId, size: int, deleted: bool) -> None:
        numbers = self.expected.setdefault(schema, [])
        made = at_once(self.store.append(schema, SchemaDefinition(SchemaType.AVRO, b"x" * size), 1, deleted=deleted))
        assert made.version == (numbers[-1] + 1 if numbers else 0)
        numbers.append(made.version)

    @rule(schema=ids)
    def purge(self, schema: SchemaId) -> None:
        at_once(self.store.purge(schema))
        self.expected.pop(schema, None)

    @rule()
    def restart(self) -> None:
        self.store = SchemaStore(self.metadata, cached_bytes_max=2_000)

    @invariant()
    def same(self) -> None:
        for name in ("a", "b", "a%2Fb", "1"):
            schema = SchemaId("public", "default", name)
            assert [each.version for each in self.store.history(schema)] == self.expected.get(schema, [])


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_32_mb_of_definitions_are_held_and_those_asked_for_last() -> None:
    """A history counts with a kilobyte beside a definition, so that very many small ones have a bound as well."""
    metadata = MemoryMetadataStore()
    store = SchemaStore(metadata)
    megabyte = SchemaDefinition(SchemaType.AVRO, b"x" * ((1 << 20) - 1000))
    ids = [SchemaId("public", "default", f"t{number}") for number in range(33)]
    for each in ids:
        at_once(store.append(each, megabyte, 5))
    first = [store.history(each) for each in ids[:32]]
    assert [store.history(each) is history for each, history in zip(ids[:32], first, strict=True)] == [True] * 32
    store.history(ids[32])
    assert store.history(ids[1]) is first[1]
    assert store.history(ids[0]) is not first[0], "it was read again"


def test_nothing_is_held_of_what_was_purged() -> None:
    """Topics that come and go under ever new names must not leave anything behind in memory."""
    store = SchemaStore(MemoryMetadataStore())
    at_once(store.append(ID, STRING, 0))
    at_once(store.purge(ID))
    assert store.history(SchemaId("t", "n", "never")) == ()
    at_once(store.purge(SchemaId("t", "n", "never")))
    assert not store._held
    assert store._held_bytes == 0
