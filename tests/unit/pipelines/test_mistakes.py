"""Mistakes that YAML and options do not show by themselves are found without Spark; and what is no pipeline's file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.pipelines.command import app
from magnetar.pipelines.declaration.document import InvalidPipelineError
from magnetar.pipelines.declaration.parser import load, parse
from tests.unit.pipelines.example import TEXT, changed


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidPipelineError) as caught:
        parse(text, "f.yaml")
    return str(caught.value).splitlines()


_PARQUET = "    format: parquet\n    path: "


@pytest.mark.parametrize(
    ("old", "new", "where", "problem"),
    [
        ("name: small", "name: ''", "f.yaml:1:7: name", "this is empty"),
        ("name: small", f"name: {'x' * 5000}", "f.yaml:1:7: name", "a name of 5,000 characters cannot be"),
        ("  service.url: pulsar://localhost:6650", "  service.url: ''", "broker.service.url", "this is empty"),
        ("dead-letter: dead\n", "dead-letter: dead\ntrigger: {interval: ''}\n", "trigger.interval", "this is empty"),
        ("sql: SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60", "sql: ''", "sql", "is empty"),
        ("sql: SELECT * FROM flights JOIN airports USING (origin) WHERE delay > 60", "sql: ';'", "sql", "is a query"),
        ("earliest", '\'{"other": "earliest"}\'', "flights.startingOffsets", "other, which is not read"),
        ("earliest", "earliest\n    maxMessagesPerTrigger: " + "9" * 23, "maxMessagesPerTrigger", "at most"),
        ("earliest", "earliest\n    maxMessagesPerTrigger: " + "9" * 5000, "maxMessagesPerTrigger", "at most"),
        ("earliest", "earliest\n    maxMessagesPerTrigger: ٣", "maxMessagesPerTrigger", "it must be a number"),
        ("    topic: flights\n", "    topic: ${env:FLIGHTS\n", "sources.flights.topic", "is not closed"),
        ("    topic: flights\n", "    topic: ${foo:BAR}\n", "sources.flights.topic", "is no reference"),
        ("    topic: late\n", "    topic: ${env:BAR\n", "sinks.out.topic", "is written out"),
        ("    topic: late\n", "    topic: ${foo:BAR}\n", "sinks.out.topic", "is written out"),
        ("dead-letter: dead\n", "dead-letter: ${foo:BAR}\n", "f.yaml:5:14: dead-letter", "is written out"),
        ("    topic: late\n", "    topic: non-persistent://public/default/x\n", "sinks.out.topic", "no messages"),
        ("dead-letter: dead", "dead-letter: non-persistent://public/default/x", "dead-letter", "no messages"),
        ("    topic: flights\n", "    topic: non-persistent://public/default/x\n", "flights.topic", "no messages"),
        ("  airports:\n", "  Flights: {topic: x}\n  airports:\n", "sources.Flights", "a source 'flights'"),
        ("  - name: late\n", "  - name: FLIGHTS\n", "steps[0].name", "'flights' is the name of an earlier source"),
        ("delay BIGINT", "delay DECIMAL(99,2)", "sources.flights.fields", "DECIMAL of a size from 1 to 38"),
        ("    topic: late\n", f"{_PARQUET}work/table\n", "sinks.out.path", "it is inside the checkpoint"),
        ("    topic: late\n", f"{_PARQUET}.\n", "sinks.out.path", "the checkpoint"),
        ("    topic: late\n", f"{_PARQUET}/etc/passwd\n", "sinks.out.path", "/etc/passwd is a file"),
        ("    topic: late\n", f"{_PARQUET}/etc/passwd/x\n", "sinks.out.path", "/etc/passwd is a file"),
        ("checkpoint: work", "checkpoint: /etc/passwd", "f.yaml:4:13: checkpoint", "/etc/passwd is a file"),
        (
            "  out:\n    topic: late\n",
            "  out: {format: delta, path: t}\n  more: {format: delta, path: t/more}\n",
            "sinks.more.path",
            "the table of sink out is inside this one, or around it",
        ),
        (
            "    topic: late\n",
            f"    from: flights\n{_PARQUET}t\n    options: {{partitionColumns: 'origin, dely'}}\n",
            "sinks.out.options.partitionColumns",
            "source flights has no column 'dely'; did you mean 'delay'?",
        ),
    ],
)
def test_a_mistake_that_only_spark_or_a_run_would_have_shown(old: str, new: str, where: str, problem: str) -> None:
    found = problems(changed(old, new))
    assert any(where in line and problem in line for line in found), found
    assert len(found) == len(set(found)), "each is said once"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("earliest", '\'{"flights-partition-7": "latest", "flights": "earliest"}\''),
        ("  airports:\n", "  lines: {format: csv, options: {sep: '', nullValue: ''}}\n  airports:\n"),
        ("dead-letter: dead\n", "dead-letter: dead\nspark: {spark.some.prefix: ''}\n"),
        ("    topic: late\n", f"    from: flights\n{_PARQUET}t\n    options: {{partitionColumns: '__topic, delay'}}\n"),
        ("delay BIGINT", "delay DECIMAL(38,38), code CHAR(3), at TIME(6)"),
    ],
)
def test_what_is_right_is_no_mistake(old: str, new: str) -> None:
    parse(changed(old, new), "f.yaml")


_NO_TEXT = "is not UTF-8; save the file as text in UTF-8"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name: " + b"[" * 20_000, "f.yaml:1:46: values are nested more than 40 deep"),
        (b"name: " + b"{a: " * 3_000, "f.yaml:1:163: values are nested more than 40 deep"),
        (b"name: p\n" + b"x: [" + b"1, " * 30_000 + b"]", "there are more than 20,000 keys and values up to here"),
        (b"x: " + b"y" * (1 << 20), "f.yaml: this has more than 1,048,576 bytes"),
        (b"name: p\n\xff\xfe", f"f.yaml:2:1: the byte 0xff {_NO_TEXT}"),
        (b"name: p\xe9\n", f"f.yaml:1:8: the byte 0xe9 {_NO_TEXT}"),
        ("name: p".encode("utf-16"), f"f.yaml:1:1: the byte 0xff {_NO_TEXT}"),
        (b"name:\n p\x00\n", "f.yaml:2:3: the character U+0000 cannot stand in YAML"),
        (TEXT.encode() + b"steps: &a [*a]\n", "twice"),
        (b"sources: &a {" + b"? *a : 1, " * 200 + b"}", "a key must be a plain name"),
        (b"", "the file is empty"),
        (None, "f.yaml: this is a directory"),
    ],
)
def test_what_is_no_pipeline_ends_with_the_code_of_an_invalid_file(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "f.yaml"
    file.mkdir() if content is None else file.write_bytes(content)
    for command in ("check", "plan", "run", "status", "verify", "replay"):
        done = CliRunner().invoke(app, [command, str(file)])
        assert done.exit_code == 2 and said in done.output, done.output


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    missing = tmp_path / "missing"
    for file, said in (
        (tmp_path / "pipe", "no regular file"),
        (Path("/dev/zero"), "no regular file"),
        (missing, "no such file"),
    ):
        with pytest.raises(InvalidPipelineError, match=f"{file}: .*{said}"):
            load(file)
