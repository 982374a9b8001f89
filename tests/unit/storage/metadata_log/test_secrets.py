"""Whose directory it is, by the secrets that its segments, checkpoints and metadata carry."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from magnetar.storage.backends.files import write_atomically
from magnetar.storage.backends.journal_backend import segment_name
from magnetar.storage.log import checkpoint, records
from magnetar.storage.metadata_log.metadata_copy import directory_secrets, own_secrets
from magnetar.testing.faultfiles import FaultFileSystem


def directory(segments: Sequence[int], checkpoints: Sequence[int] = ()) -> FaultFileSystem:
    """Segments and checkpoints with these secrets, the oldest first; 0: a damaged one."""
    files = FaultFileSystem(random.Random(0))
    for number, secret in enumerate(segments, 1):
        header = records.segment_header(records.SegmentHeader(number, 0, 0, 5, secret))
        write_atomically(files, segment_name(number), header if secret else header[:-1])
    for number, secret in enumerate(checkpoints, 1):
        head = {"format": 2, "segment": 1, "length": 64, "sequence": 3, "ids": [1, 2, 3], "secret": secret}
        data = checkpoint.encode(head, [])
        write_atomically(files, f"checkpoint-{number:016x}", data if secret else data[:-1])
    return files


@pytest.mark.parametrize(
    ("segments", "checkpoints", "found"),
    [
        ([], [], []), ([7], [], [7]), ([7, 7], [9], [7]), ([0], [9], [9]), ([], [9, 9, 8], [9, 8]),
        ([7, 8, 8], [], [8, 7]), ([7, 8], [7], [7, 8]), ([7, 8], [8], [8, 7]), ([0, 7, 0], [9], [7]),
        ([7, 8], [0, 8], [8, 7]), ([7, 8, 8], [7, 7], [7, 8]),
    ],
)  # fmt: skip
def test_checkpoints_are_asked_where_segments_do_not_agree(
    segments: list[int], checkpoints: list[int], found: list[int]
) -> None:
    assert directory_secrets(directory(segments, checkpoints)) == found


@pytest.mark.parametrize(("newer", "found"), [(63, [8, 7]), (64, [8])])
def test_the_newest_64_segments_say_whose_they_are(newer: int, found: list[int]) -> None:
    assert directory_secrets(directory([7] * 100 + [8] * newer)) == found


@pytest.mark.parametrize(
    ("found", "known", "own"),
    [
        ([7], {7}, [7]), ([7], {8}, [7]), ([7, 8], {8}, [8]), ([7, 8], {8, 7}, [7, 8]), ([8, 7], {8, 7}, [8, 7]),
        ([], {9, 3}, [3, 9]), ([], set(), []), ([7], set(), [7]),
    ],
)  # fmt: skip
def test_what_both_say_counts_before_what_segments_say_before_what_metadata_say(
    found: list[int], known: set[int], own: list[int]
) -> None:
    assert own_secrets(found, known) == own
