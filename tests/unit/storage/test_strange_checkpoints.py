"""Checkpoints that hold anything: damage that is named, never a start that fails with something else."""

from __future__ import annotations

import asyncio
import json
import random
import struct
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from magnetar.model.errors import PersistenceError
from magnetar.runtime.clock import SystemClock
from magnetar.storage.backends.files import File, write_atomically
from magnetar.storage.directory_format import refuse_newer
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.log import checkpoint, log_image, records
from magnetar.storage.log.checkpoint_head import START_BYTES
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.metadata_log.metadata_scan import instance_of
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFile, FaultFileSystem

OWN = 7
HEAD = {"format": 2, "segment": 1, "length": 64, "sequence": 3, "ids": [1, 2, 3], "secret": OWN}
LOG = {
    "id": 1, "name": "persistent://public/default/t", "properties": {}, "end": 0, "index": 0, "hidden": [0, 0],
    "ledgers": [], "spans": [], "annexes": 2,
}  # fmt: skip
NAME = "checkpoint-00000000000000ff"


class ReadFiles(FaultFileSystem):
    """Counts what is read of checkpoints."""

    checkpoint_bytes = 0

    def open(self, name: str, *, create: bool = False) -> File:
        file = super().open(name, create=create)
        if name.startswith("checkpoint-"):
            assert isinstance(file, FaultFile)
            whole = file.read

            def read(offset: int, size: int) -> bytes:
                found = whole(offset, size)
                self.checkpoint_bytes += len(found)
                return found

            file.read = read  # type: ignore[method-assign]
        return file


def of_text(head: bytes, rest: bytes = b"") -> bytes:
    """A checkpoint whose checksum matches, whatever its head is."""
    body = b"MGTRCKP1" + struct.pack("<I", len(head)) + head + rest
    return body + struct.pack("<I", crc32c(body))


def of(head: object, *logs: Any) -> bytes:
    blobs = [log_image.encode(about, [], []) for about in logs]
    return of_text(json.dumps(head).encode(), b"".join(struct.pack("<I", len(blob)) + blob for blob in blobs))


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def judged(data: bytes) -> checkpoint.Checkpoint | None:
    try:
        return checkpoint.decode(data, OWN)
    except (records.RecordError, PersistenceError):
        return None


@given(head=anything)
@example(head=[])
@example(head=3)
@example(head=None)
@example(head={"format": True})
@example(head={"format": 1e400})
@example(head={"format": [3]})
@example(head={"format": 10**30})
def test_a_head_of_any_type_is_judged(head: object) -> None:
    assert judged(of(head)) is None


@pytest.mark.parametrize(
    "head",
    [
        b"", b"[" * 100_000, b'{"a":' * 100_000, b'{"format":%s}' % (b"9" * 5000), b"\xff\xfe", b"NaN", b'"\\ud800"',
        b'{"format":3', b"-1e999999",
    ],
    ids=range(9),
)  # fmt: skip
def test_a_head_that_is_no_json_is_judged(head: bytes) -> None:
    with pytest.raises(records.RecordError):
        checkpoint.decode(of_text(head), OWN)


@given(data=st.binary(max_size=200))
def test_bytes_are_judged(data: bytes) -> None:
    assert judged(data) is None
    assert judged(of_text(json.dumps(HEAD).encode(), data)) is None or not data
    assert judged(b"MGTRCKP1" + data + struct.pack("<I", crc32c(b"MGTRCKP1" + data))) is None


@st.composite
def nearly(draw: st.DrawFn, fields: dict[str, Any]) -> dict[str, Any]:
    """A record of ours in which one thing is anything, or gone."""
    name = draw(st.sampled_from(sorted(fields)))
    found = {**fields, name: draw(anything)}
    if draw(st.booleans()):
        del found[name]
    return found


@given(head=nearly(HEAD), about=nearly(LOG))
def test_what_is_nearly_ours_is_judged_and_what_is_taken_can_be_used(
    head: dict[str, Any], about: dict[str, Any]
) -> None:
    for data in (of(head, LOG), of(HEAD, about)):
        found = judged(data)
        if found is not None:
            assert found.head["secret"] == OWN
            assert sorted(map(type, found.head["ids"]), key=str) == [int] * 3
            assert all(isinstance(log.about["name"], str) for log in found.logs)


def directory() -> ReadFiles:
    """A store with a message, closed."""
    files = ReadFiles(random.Random(1))

    async def fill() -> None:
        store = LocalLedgerStore(files, SystemClock())
        store.belong_to(OWN)
        store.open()
        store.open_log("persistent://public/default/t").append(b"m", 1, None)
        await store.close()
        await MetadataLog(files).put("/fact", b"1")

    asyncio.run(fill())
    return files


def started(files: FaultFileSystem) -> list[str]:
    """Which files a start set aside; the message is there."""

    async def start() -> None:
        refuse_newer(files)
        store = LocalLedgerStore(files, SystemClock())
        store.belong_to(MetadataLog(files).instance)
        store.open()
        managed = store.find_log("persistent://public/default/t")
        assert managed is not None
        assert managed.end == 1
        await store.close()

    asyncio.run(start())
    return [name for name in files.names() if name.startswith("quarantine-checkpoint")]


@pytest.mark.parametrize(
    "data",
    [
        of([1]), of(None), of(17), of({"format": [3]}), of({**HEAD, "secret": 99, "format": 3}),
        of({**HEAD, "secret": 99}), of({**HEAD, "ids": None}), of({**HEAD, "segment": -1}), of(HEAD, [1]),
        of(HEAD, {**LOG, "spans": [[1]]}), of_text(b"[" * 100_000), b"", of_text(b"{}", b"\xff" * 9),
        of({**HEAD, "discarded": [1]}), of({**HEAD, "discarded": [[]]}), of({**HEAD, "discarded": ["x" * 7]}),
        of({**HEAD, "discarded": [["", "", "", 1, 1, 1, -1]]}),
        of(HEAD, {**LOG, "end": 9, "ledgers": [[1, 0, 0, 1, 1, 5, 5, 5], [2, 4, 0, 1, 0, 5, 5, 5]]}),
        of(HEAD, {**LOG, "ledgers": [[1, 0, 0, 1, 0, 1, 1, 1, [None] * 8]]}), of(HEAD, {**LOG, "end": -1}),
        of(HEAD, LOG, LOG), of(HEAD, LOG, {**LOG, "id": 2}), of(HEAD, {**LOG, "name": "\ud800"}),
        of(HEAD, {key: value for key, value in LOG.items() if key != "annexes"}),
    ],
    ids=range(24),
)  # fmt: skip
def test_a_strange_checkpoint_is_named_and_the_one_before_it_is_used(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    files = directory()
    write_atomically(files, NAME, data)
    said = [text for text in verify(files).damage if NAME in text]
    assert [text.endswith("; a start sets it aside") for text in said] == [True]
    assert started(files) == [f"quarantine-{NAME}"]
    assert f"{NAME} is damaged" in caplog.text


def test_a_damaged_checkpoint_before_a_whole_one_is_named_as_what_no_start_reads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = directory()
    write_atomically(files, "checkpoint-0000000000000000", of(None))
    (said,) = [text for text in verify(files).damage if "checkpoint-" in text]
    assert said.endswith("a start uses a newer one and does not read it")
    assert started(files) == []
    assert "checkpoint-" not in caplog.text


def test_ours_of_a_newer_format_refuses_the_start() -> None:
    files = directory()
    write_atomically(files, NAME, of({**HEAD, "format": 3}, [1]))
    with pytest.raises(PersistenceError, match=r"newer version of magnetar \(format 3"):
        refuse_newer(files)


def test_the_question_for_the_format_reads_heads_only() -> None:
    files = directory()
    for number in (8, 9):
        name = f"checkpoint-{number:016x}"
        write_atomically(files, name, of_text(json.dumps(HEAD).encode(), bytes(8 * START_BYTES)))
    files.checkpoint_bytes = 0
    refuse_newer(files)
    assert files.checkpoint_bytes <= 4 * START_BYTES


@given(head=anything | nearly({"magnetar": "metadata", "format": 1, "instance": "07", "records": 0, "through": 0}))
@example(head={"magnetar": "metadata", "format": 1e400, "instance": "07"})
def test_a_head_of_the_metadata_is_judged(head: object) -> None:
    body = json.dumps(head).encode()
    found = instance_of(b"%08x %s\n" % (crc32c(body), body))
    assert found is None or 0 <= found < 1 << 32


def test_a_head_of_the_metadata_that_is_nested_without_end_is_damage() -> None:
    body = b"[" * 100_000
    assert instance_of(b"%08x %s\n" % (crc32c(body), body)) is None
