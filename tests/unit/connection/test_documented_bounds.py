"""The bounds of docs/decisions/018 and docs/guarantees.md are the numbers that connections obey."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Final

import pytest

from magnetar.broker.connection import listener
from magnetar.broker.connection.bounds import turns, unfinished_frames, unsent_bytes, wide_reads
from magnetar.broker.throttling import passes
from magnetar.broker.topic.cleanup import retention
from magnetar.protocol import codec, decoder, server, unparsed_commands
from magnetar.storage.backends import reserve
from magnetar.storage.metadata_log import metadata_log
from magnetar.storage.space import segment_cleaner, space_use, victims
from magnetar.storage.store_settings import StoreSettings
from magnetar.transactions import coordinator

DOCS: Final = Path(__file__).parents[3] / "docs"
MANY_TOPICS, DISK = "decisions/060-many-topics.md", "disk.md"
CONNECTIONS, GUARANTEES, SETTINGS = "decisions/018-fair-and-bounded-connections.md", "guarantees.md", "settings.md"
PASSES: Final = "decisions/079-passes-over-subscriptions.md"
KB, MB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("document", "sentence", "bound", "number"),
    [
        (CONNECTIONS, "decodes one slice at a time (256 KB,", decoder.SLICE_BYTES, 256 * KB),
        (CONNECTIONS, "or 512 with very many producers", wide_reads.WIDE, 512 * KB),
        (CONNECTIONS, "and 4,096 frames,", decoder.SLICE_FRAMES, 4096),
        (CONNECTIONS, "1,024 commands through the codec", decoder.SLICE_COMMANDS, 1024),
        (CONNECTIONS, "until its turn (1,000 units,", turns.TURN, 1000),
        (CONNECTIONS, "that all connections share (2,000 units)", turns.ROUND, 2000),
        (CONNECTIONS, "An ACK or REDELIVER of over 16 KB stays undecoded", decoder.UNPARSED_FROM, 16 * KB),
        (CONNECTIONS, "into commands of 250 ids", unparsed_commands.PART_IDS, 250),
        (CONNECTIONS, "at most 1 MiB and 64 KiB beside its entry", decoder.COMMAND_MAX, MB + 64 * KB),
        (CONNECTIONS, "10,000 items in its lists", codec.PARTS_MAX, 10_000),
        (CONNECTIONS, "A frame has at most 64 KB before CONNECTED", server.GREETING_MAX, 64 * KB),
        (CONNECTIONS, "Unfinished frames of all connections share 32 MB", listener.UNFINISHED_MAX, 32 * MB),
        (CONNECTIONS, "two seconds to become whole", unfinished_frames.FRAME_SECONDS, 2),
        (CONNECTIONS, "What clients do not take shares 64 MB", listener.UNSENT_MAX, 64 * MB),
        (CONNECTIONS, "one alone is closed at 32 MB", unsent_bytes.ONE_MAX, 32 * MB),
        (GUARANTEES, "all sockets together are given 4 MB in a turn", unsent_bytes.TURN_BYTES, 4 * MB),
        (PASSES, "share 2,000 of them in one turn of the loop", passes.TURN, 2_000),
        (PASSES, "24 for each and one for each entry", passes.EACH, 24),
        (GUARANTEES, "up to 4,096 frames at a time", decoder.SLICE_FRAMES, 4096),
        (GUARANTEES, "128 KB of an unfinished frame and of answers are each connection's own", unsent_bytes.LITTLE,
         128 * KB),
        (GUARANTEES, "a pass of retention reads at most 64 MB of a topic", retention.BUDGET_BYTES, 64 * MB),
        (GUARANTEES, "A full disk can be drained: 16 MB are kept back", reserve.RESERVE_BYTES, 16 * MB),
        (GUARANTEES, "as are left for others, of 50,000", coordinator.OPEN_MAX, 50_000),
        (MANY_TOPICS, "has 256 producers or more", wide_reads.MANY_PRODUCERS, 256),
        (MANY_TOPICS, "reads 256,000 bytes (all that uvloop reads at once)", wide_reads.USUAL, 256_000),
        (CONNECTIONS, "16 KB instead of 128 are each one's own", unfinished_frames._LEAST, 16 * KB),
        (DISK, "segments and indexes ≤ 2 × what lives + 5 segments (640 MB)", space_use.SEGMENTS, 5),
        (DISK, "+ 5 segments (640 MB)", 5 * StoreSettings().segment_bytes, 640 * MB),
        (DISK, "garbage of an eighth of a segment (16 MB) or more", segment_cleaner._ROLL_PART, 8),
        (DISK, "at once when a quarter of a segment (32 MB) has died", segment_cleaner._EARLY_PART, 4),
        (DISK, "(15/8 of what lives)", victims.AIM, Fraction(15, 8)),
        (DISK, "groups of 32 KB and more lie on whole pages", StoreSettings().aligned_bytes_min, 32 * KB),
        (DISK, "grown to twice what lives in it (and 1 MB)", metadata_log.SLACK_BYTES, MB),
        (SETTINGS, "0: 50,000, of which a role has at most", coordinator.OPEN_MAX, 50_000),
    ],
)  # fmt: skip
def test_a_bound_is_as_large_as_the_document_says(
    document: str, sentence: str, bound: float | Fraction, number: float | Fraction
) -> None:
    said = re.sub(r"\s+", " ", (DOCS / document).read_text())
    assert sentence in said
    assert bound == number
