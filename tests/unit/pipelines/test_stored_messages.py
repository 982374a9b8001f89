"""Topics belong to sources, and messages that no key opens are counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.columnar.entries.block import EntryBlock, EntryBytes, block_of
from magnetar.columnar.single_entries.opener import CryptoFailureAction, EntryOpener
from magnetar.pipelines.declaration.model import Pipeline
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.redrive import _original
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.dead_letter import ROW, DeadLetter
from magnetar.pipelines.state.stored_messages import reader_options, sealed_count, sources_by_topic
from magnetar.protocol.entries import metadata_of
from magnetar.spark.source.reading import range_entries
from tests.support.batch_writer import BatchWriter
from tests.support.chunked_messages import chunks
from tests.support.encrypted_entries import pair
from tests.support.encrypted_entries import sealed as encrypted
from tests.unit.pipelines.example import changed
from tests.unit.pipelines.histories import spark_log

T = "persistent://public/default/flights-partition-{}"


def pipeline_of(directory: Path) -> Pipeline:
    """Two sources, the first one with a key."""
    (directory / "key.pem").write_text(pair()[0])
    more = f"    decryption.privateKey: {directory}/key.pem\n  open:\n    topic: open\n  airports:\n"
    return parse(changed("  airports:\n", more), str(directory / "small.yaml"))


def test_a_topic_of_a_source_with_a_key_is_known_before_the_first_manifest_that_has_it(tmp_path: Path) -> None:
    """Its dead letters are written before that manifest, and a crash may come between."""
    pipeline, checkpoint = pipeline_of(tmp_path), PipelineCheckpoint(str(tmp_path))
    checkpoint.begin("small", {"flights": {T.format(0): ReadPosition(1, 0)}, "open": {"o": ReadPosition(2, 0)}})
    offsets = [
        {"v": 1, "p": {T.format(0): "1:4:0", T.format(1): "5:1:0"}},
        {"v": 1, "p": {"o": "2:0:0", "o2": "3:0:0"}},
    ]
    spark_log(tmp_path, 0, *map(json.dumps, offsets))
    found = {topic: source.name for topic, source in sources_by_topic(pipeline, checkpoint).items()}
    assert found == {T.format(0): "flights", T.format(1): "flights", "o": "open", "o2": "open"}


def test_of_two_sources_of_a_topic_the_one_with_a_key_counts(tmp_path: Path) -> None:
    pipeline, checkpoint = pipeline_of(tmp_path), PipelineCheckpoint(str(tmp_path))
    checkpoint.begin("small", {"flights": {"both": ReadPosition(1, 0)}, "open": {"both": ReadPosition(1, 0)}})
    assert sources_by_topic(pipeline, checkpoint)["both"].name == "flights"


def counted(entries: list[bytes]) -> int:
    """Messages in entries that stay closed."""
    opener = EntryOpener("t", 1_000, None, CryptoFailureAction.CONSUME)
    found = [opener.open(1, number, entry) for number, entry in enumerate(entries)]
    return sum(sealed_count(metadata_of(one.data).properties) or 0 for one in found if one is not None)


def test_messages_that_no_key_opens_are_counted_once() -> None:
    """A producer that ended between chunks sends the message anew from its first one."""
    (batch,) = BatchWriter("p").pack(5, [b"a", b"b", b"c"], [1, 2, 3])
    large = [encrypted(one) for one in chunks("name with blanks-1", b"x" * 30, 3)]
    assert counted([batch.entry]) == 0
    assert counted([encrypted(batch.entry)]) == 3
    assert counted(large) == 1
    assert counted([*large[:2], *large]) == 1


def test_a_message_in_a_batch_that_no_key_opens_any_more_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (batch,) = BatchWriter("p").pack(5, [b"a", b"b", b"c"], [1, 2, 3])
    there = {ReadPosition(3, 4): encrypted(batch.entry), ReadPosition(3, 5): batch.entry}

    class Reader:
        """Return one of the two entries above."""

        def __init__(self, _lookup: Any, _topic: str, start: ReadPosition, end: ReadPosition, **_: Any) -> None:
            self.start, self.end = start, end

        def blocks(self) -> Iterator[EntryBlock]:
            if (entry := there.get(self.start._replace(batch=0))) is not None:
                yield block_of([EntryBytes(*self.start[:2], entry)], self.start.batch, self.end.batch)

    monkeypatch.setattr(range_entries, "RangeReader", Reader)
    pipeline = pipeline_of(tmp_path)
    lookup: Any = None

    def found(at: ReadPosition, options: dict[str, str]) -> Any:
        letter = DeadLetter("small", ROW, "", "", "", "t", at, ())
        return _original(lookup, letter, reader_options(pipeline, "t", options, CryptoFailureAction.CONSUME))

    (tmp_path / "other.pem").write_text(pair(1)[0])
    right, wrong = ({"decryption.privateKey": str(tmp_path / name)} for name in ("key.pem", "other.pem"))
    for at in (ReadPosition(3, 4, 0), ReadPosition(3, 4, 2)):
        assert sealed_count(found(at, wrong).properties) == 3
        assert found(at, right).value == [b"a", b"b", b"c"][at.batch]
    assert found(ReadPosition(3, 5, 3), right) is None
    assert found(ReadPosition(3, 6, 1), right) is None
