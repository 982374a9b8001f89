"""Manifests of a pipeline that never ran, right in every respect: one source with one topic, two outputs."""

from __future__ import annotations

from pathlib import Path

from magnetar.client.read_position import ReadPosition
from magnetar.pipelines.state.manifest import FIRST, CheckPart, Manifest, OutputPart, SourcePart, print_text
from magnetar.spark.durable_files import write_whole
from magnetar.spark.sink.sequence_ids import SequenceId

TOPIC = "persistent://public/default/flights"
QUERY = "q-1"
ROWS = 10
"""Rows of each micro-batch; one of them is dead, one dropped."""


def row_print(entry: int) -> int:
    """Return the print of the source's row at that entry; there is one row per entry."""
    return (entry + 1) * 0x9E3779B97F4A7C15


def manifest(batch: int, previous: str) -> Manifest:
    start, end = batch * ROWS, (batch + 1) * ROWS
    written = range(ROWS - 2)
    return Manifest(
        "p",
        QUERY,
        batch,
        {
            "flights": SourcePart(
                {TOPIC: str(ReadPosition(1, start))},
                {TOPIC: str(ReadPosition(1, end))},
                {TOPIC: ROWS},
                {TOPIC: print_text(sum(map(row_print, range(start, end))))},
            )
        },
        {"flights": CheckPart(ROWS, 1, 1, {"bad": 1, "dull": 1})},
        {
            "out": OutputPart(
                "topic", "t", len(written), print_text(sum(100 * batch + row for row in written)), ("flights",)
            ),
            "dead-letters": OutputPart("topic", "d", 1, print_text(7), None),
        },
        {"began_ms": 1000 * batch, "computed_ms": 1000 * batch + 5, "ended_ms": 1000 * batch + 9},
        previous,
    ).sealed()


def history(batches: int) -> list[Manifest]:
    """Return manifests from batch 0 on."""
    found: list[Manifest] = []
    for batch in range(batches):
        found.append(manifest(batch, found[-1].fingerprint if found else FIRST))
    return found


def messages(batches: int) -> list[tuple[str, int, int]]:
    """Producer, sequence id and print of what stands in the topic of ``out``: two tasks, four rows each."""
    return [
        (f"spark.{QUERY}/out.{row % 2}", SequenceId(batch, row // 2, 9).number(), 100 * batch + row)
        for batch in range(batches)
        for row in range(ROWS - 2)
    ]


V1 = 'v1\n{"batchWatermarkMs":0}\n'


def spark_log(directory: Path, batch: int, *lines: str) -> None:
    write_whole(directory / "offsets" / str(batch), V1 + "\n".join(lines))
