"""How fast values become columns: Avro against polars' own reader, JSON against Arrow's, on the same bytes.

    python -m benchmarks.values [--rows 200000]

polars gets the records as one block of a container file and Arrow the values as lines: what each of them reads best.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Callable
from typing import Any

import fastavro
import polars
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.json  # type: ignore[import-untyped]  # the same

from magnetar.columnar.avro.read.reader import Avro
from magnetar.columnar.json.reader import Json
from magnetar.schema_definitions.avro import parse

BATCH = 10_000
"""Rows that the source decodes at a time."""
ROUNDS = 5
FIELDS = {
    "id": "long",
    "name": "string",
    "x": ["null", "double"],
    "n": "int",
    "ok": "boolean",
    "tag": ["null", "string"],
}
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}


def records(count: int) -> list[dict[str, Any]]:
    """Return records that are the same at each call."""
    return [
        {
            "id": index * 7919,
            "name": f"name-{index % 1000}",
            "x": None if index % 5 == 0 else index / 3,
            "n": index % 300,
            "ok": index % 2 == 0,
            "tag": None if index % 3 else f"t{index % 7}",
        }
        for index in range(count)
    ]


def container(values: list[bytes]) -> bytes:
    """The records as one block of an Avro container file."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(SCHEMA), [])
    body = b"".join(values)
    return out.getvalue() + _long(len(values)) + _long(len(body)) + body + out.getvalue()[-16:]


def _long(number: int) -> bytes:
    left, found = number << 1, b""
    while left > 127:
        found += bytes([left & 127 | 128])
        left >>= 7
    return found + bytes([left])


def best(what: Callable[[], Any], rows: int) -> float:
    """Million rows a second in the best of some rounds; the first does not count."""
    what()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        what()
        times.append(time.perf_counter() - start)
    return rows / min(times) / 1e6


def in_batches(decoder: Any, values: Any) -> Callable[[], None]:
    """Return a function that decodes the values batch by batch, as the source does."""

    def run() -> None:
        for at in range(0, len(values), BATCH):
            part = values[at : at + BATCH]
            _, unreadable = decoder.read(part, [(len(part), None)])
            assert not unreadable, unreadable[0]

    return run


def main() -> None:
    """Print the rates."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=200_000)
    rows = arguments.parse_args().rows
    found = records(rows)
    known, reader = fastavro.parse_schema(SCHEMA), parse(json.dumps(SCHEMA).encode())
    avro = []
    for one in found:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, known, one)
        avro.append(out.getvalue())
    lines = [json.dumps(one).encode() for one in found]
    whole, text = container(avro), b"\n".join(lines)
    ours = best(in_batches(Avro(reader), pa.array(avro, pa.binary())), rows)
    theirs = best(lambda: polars.read_avro(io.BytesIO(whole)).to_arrow(), rows)
    print(f"avro  {ours:6.2f} M rows/s, polars {theirs:6.2f}, ratio {ours / theirs:.2f}")
    decoder = Json(reader)
    ours = best(in_batches(decoder, pa.array(lines, pa.binary())), rows)
    options = pyarrow.json.ReadOptions(use_threads=False), pyarrow.json.ParseOptions(explicit_schema=decoder.schema)
    theirs = best(lambda: pyarrow.json.read_json(pa.BufferReader(text), *options), rows)
    print(f"json  {ours:6.2f} M rows/s, pyarrow {theirs:6.2f}, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
