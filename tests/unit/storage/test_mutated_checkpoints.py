"""Whole checkpoints of a real store in which something is anything: a start takes one or sets it aside, as ``verify``
says, and what it takes can be read, written and left in a checkpoint again."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest
from crc32c import crc32c

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.log import checkpoint, log_image, records
from magnetar.storage.verify import verify
from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.directory_image import Files, restored, snapshot
from tests.support.loop_turns import settled
from tests.support.mutations import U64S, mutated
from tests.support.store_lives import append, disk, numbered, opened, read, run

SET_ASIDE = "; a start sets it aside"
CASES = 300


def filled() -> Files:
    """A stopped store with what a checkpoint can hold, over several segments."""
    files = disk()

    async def main() -> None:
        for life in range(2):
            store = opened(files)
            for i in range(3):
                managed = store.open_log(f"persistent://public/default/t{i}")
                managed.properties = {"a": "b", "n": [1, 2]}
                managed.write_birth()
                await append(store, managed, *numbered(20 * life, 20 * life + 20))
                if life:
                    managed.feature_state("f").replay(records.RecordKind.FEATURE_STATE, b"state")
                    managed.feature_state("f").replay(records.RecordKind.FEATURE_STATE_CHANGE, b"change")
                for name in ("s", "u") if not life else ():
                    cursor = managed.open_cursor(name, 2, properties={"p": 1})
                    cursor.acknowledge([4, 5, 9, 17])
                    cursor.acknowledge_indexes(12, [5], 8)
            managed = store.open_log("persistent://public/default/t1")
            managed.trim(5, 0)
            ledger = managed.table.ledgers[0]
            managed.record_offload(
                ledger.id, Offload("file:///x", "c", "d", ledger.entries, ledger.bytes, 1, 5), lambda: None, print
            )
            store.copy_discarded(Offload("file:///x", "gone", "d", 1, 1, 1, 5))
            await settled()
            await store.close()

    run(main())
    return snapshot(files)


FILES = filled()
NEWEST = max(name for name in FILES if name.startswith("checkpoint-"))
HEAD, LOGS = checkpoint.decode(FILES[NEWEST])


def checkpoint_of(rng: random.Random) -> bytes:
    """The newest one with one to three changes, and a checksum that matches."""
    parts = rng.choice(["head", "about", "about", "about", "cursor", "bytes"])
    head = json.loads(json.dumps(HEAD))
    abouts = [json.loads(json.dumps(one.about)) for one in LOGS]
    cursors = [
        json.loads(json.dumps([{"name": c.name, "properties": c.properties} for c in one.cursors])) for one in LOGS
    ]
    for _ in range(rng.choice([1, 1, 3])):
        if parts == "head":
            mutated(rng, head)
        elif parts == "about":
            mutated(rng, abouts)
        elif parts == "cursor":
            mutated(rng, cursors)
    blobs = []
    for i, about in enumerate(abouts):
        one = LOGS[i % len(LOGS)]
        named = cursors[i] if i < len(cursors) else None
        states = [state_of(rng, c.state, changed=parts == "cursor" and not rng.randrange(4)) for c in one.cursors]
        texts = [json.dumps(text).encode() for text in (named if isinstance(named, list) else [])]
        bodies = [struct.pack("<I", len(text)) + text + state for text, state in zip(texts, states, strict=False)]
        blobs.append(log_image.encode(about, bodies, one.feature_states))
    body = bytearray(checkpoint.encode(head, blobs)[:-4])
    if parts == "bytes":
        for _ in range(rng.choice([1, 3])):
            body[rng.randrange(8, len(body))] = rng.randrange(256)
    return bytes(body) + struct.pack("<I", crc32c(body))


def state_of(rng: random.Random, state: Any, *, changed: bool) -> bytes:
    """A cursor's state as bytes, with a number that is another one."""
    numbers = [state.log, state.cursor, state.mark_delete & (1 << 64) - 1, *(b for pair in state.ranges for b in pair)]
    if changed:
        numbers[rng.randrange(len(numbers))] = rng.choice(U64S)
    partial = b"".join(struct.pack(f"<QI{len(words)}Q", o, len(words), *words) for o, words in state.partial)
    packed = struct.pack("<QQQII", *numbers[:3], len(state.ranges), len(state.partial))
    return packed + struct.pack(f"<{len(numbers) - 3}Q", *numbers[3:]) + partial


async def used(files: FaultFileSystem) -> None:
    """A life in which every log is written and read. Raises PersistenceError if the start is refused."""
    store = opened(files)
    for name in store.names():
        managed = store.open_log(name)
        await append(store, managed, b"more")
        assert (await read(managed, managed.end - 1)) == [b"more"]
        try:
            await read(managed, managed.first)
        except (MagnetarError, OSError, records.RecordError, AssertionError):
            pass  # entries that a mutated table misplaces are unreadable, or others
        for cursor in managed.cursors.values():
            cursor.backlog()
            cursor.acknowledge_until(managed.end - 1)
    await store.close()


@pytest.mark.parametrize("tens", range(CASES // 10))
def test_a_start_and_verify_agree_and_what_is_taken_can_be_used(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        judged(checkpoint_of(random.Random(seed)))


def judged(data: bytes) -> None:
    files = restored({**FILES, NEWEST: data})
    said = verified({**FILES, NEWEST: data})
    try:
        run(used(files))
    except PersistenceError:
        assert said
        return
    taken = f"quarantine-{NEWEST}" not in files.names()
    assert taken == (not any(NEWEST in text and text.endswith(SET_ASIDE) for text in said))
    left = snapshot(files)
    _, logs = checkpoint.decode(left[max(name for name in left if name.startswith("checkpoint-"))])
    if not taken:
        assert {one.about["name"]: hidden_of(one.about) for one in logs} == HIDDEN


def verified(files: Files) -> list[str]:
    try:
        return verify(restored(files)).damage
    except PersistenceError as error:
        return [str(error)]


def hidden_of(about: dict[str, Any]) -> int:
    hidden: int = about["hidden"][0]
    first: int = about["ledgers"][0][1]
    return max(hidden, first)


HIDDEN = {one.about["name"]: hidden_of(one.about) for one in LOGS}


def test_the_real_one_is_taken() -> None:
    files = restored(FILES)
    run(used(files))
    assert not [name for name in files.names() if name.startswith("quarantine-")]
    assert len(LOGS) == 3
    assert all(len(one.cursors) == 2 and one.feature_states for one in LOGS)
    assert HEAD["discarded"]
