"""The example of docs/disk.md, built byte by byte from what the document says, and read by the store."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from crc32c import crc32c

from magnetar.storage.backends.journal_backend import index_name
from magnetar.storage.log import checkpoint
from magnetar.storage.log.records import RecordKind
from tests.support.directory_image import restored, snapshot
from tests.support.store_lives import opened, read, run

DOCUMENT = Path(__file__).parents[4] / "docs" / "disk.md"
CREATED_MS = 1_700_000_000_000
SECRET = 0x00C0FFEE


def documented(title: str) -> bytes:
    """The bytes of the hex dump under a heading."""
    part = DOCUMENT.read_text().split(f"### {title}\n", 1)[1].split("```", 2)[1]
    return bytes.fromhex("".join(re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+)", part, re.MULTILINE)))


def summed(fixed: bytes) -> bytes:
    whole = fixed + struct.pack("<I", SECRET)
    return whole + struct.pack("<I", crc32c(whole))


def record(kind: int, flags: int, body: bytes) -> bytes:
    start = struct.pack("<BBHI", kind, flags, 0, len(body))
    return start + struct.pack("<I", crc32c(start + body)) + body


def block(sequence: int, *records: bytes) -> bytes:
    whole = b"".join(records)
    return summed(struct.pack("<4sIQQ", b"MBLK", len(records), len(whole), sequence)) + whole


def example_segment() -> bytes:
    header = summed(struct.pack("<8sQQQQ", b"MGTRLOG1", 1, 0, 0, CREATED_MS))
    entries = [b"first", b"second!"]
    extent = struct.pack("<QQQQQQI", 1, 1, 0, 0, 0, CREATED_MS, 2)
    extent += struct.pack("<II", *map(len, entries)) + struct.pack("<II", 1, 3) + b"".join(entries)
    about = b'{"name":"sub","properties":{}}'
    cursor = struct.pack("<I", len(about)) + about + struct.pack("<QQqII", 1, 1, -1, 0, 0)
    return (
        header
        + block(
            0,
            record(2, 0, b'{"log":1,"name":"t","properties":{}}'),
            record(4, 0, b'{"log":1,"ledger":1,"ordinal":0,"index":0,"ms":1700000000000}'),
            record(6, 0, cursor),
            record(1, 1, extent),
        )
        + block(1, record(7, 0, struct.pack("<QQqIIQQ", 1, 1, -1, 1, 0, 1, 2)))
    )


def test_the_documents_example_is_what_its_words_say() -> None:
    assert documented("The segment") == example_segment()


def test_the_store_reads_the_documents_example_and_makes_its_index() -> None:
    async def main() -> None:
        files = restored({"segment-0000000000000001": documented("The segment")})
        store = opened(files)
        assert store.damage == []
        managed = store._logs["t"]
        assert await read(managed) == [b"first", b"second!"]
        assert managed.index == 4
        assert managed.cursors["sub"].mark_delete == -1
        assert list(managed.cursors["sub"].acked.ranges()) == [(1, 2)]
        made = snapshot(files)
        assert made[index_name(1)] == documented("Its index")
        found = checkpoint.decode(made["checkpoint-0000000000000001"])
        length = len(example_segment())
        head = {"format": 2, "segment": 1, "length": length, "sequence": 2, "ids": [1, 1, 1], "secret": SECRET}
        assert found.head == head

    run(main())


def test_the_index_is_what_the_words_say() -> None:
    segment = example_segment()
    offset = segment.index(struct.pack("<BBH", 1, 1, 0), 100)
    length = segment.index(b"MBLK", offset) - offset
    body = struct.pack("<8sQI", b"MGTRIDX1", 1, 1) + struct.pack("<QQQI", 1, 1, 0, 1)
    body += struct.pack("<Q", 0) + struct.pack("<Q", offset) + struct.pack("<I", length)
    assert documented("Its index") == body + struct.pack("<I", crc32c(body))


def test_the_table_of_records_is_what_stands_on_disks() -> None:
    """Directories that were written with these numbers are read by every later version."""
    listed = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", DOCUMENT.read_text(), re.MULTILINE)
    assert {name: int(number) for number, name in listed} == {kind.name: int(kind) for kind in RecordKind}
    assert [int(number) for number, _ in listed] == list(range(1, len(listed) + 1)), "none twice, none left out"
