"""docs/client-interop.md: the matrix as it was last run, a row for each encoding."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.servers import apache

from tests.interop.encodings import CLIENTS, encodings
from tests.interop.matrix import Cell

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "client-interop.md"
HEAD: Final = """# What clients read of each other

The clients of this project (`magnetar.Client`, `magnetar.aio.Client`), the official Python client {python} and Java's
client of Apache Pulsar {java}: each writes every encoding below, and each reads what every other wrote, on magnetar and
on Apache Pulsar {java}. Compared are payload, value, key, ordering key, properties, event time, sequence id, producer,
order and message id with what was to be written, and payloads with those that Java's client writes of the same values.

`make interop` runs it and writes this page. `make test` runs the part without Java (`tests/interop/test_short.py`), and
reads what Java's client wrote from a file (`tests/interop/test_java_entries.py`).

Last run: {date}, {cells} pairs, of which {wrong} differ.

| encoding | writers | readers | pairs | differ |
|---|---|---|---|---|
"""
TAIL: Final = """
A client that is not named has no such encoding: the official Python client has no transactions, no retry letters, no
keys or ordering keys of bytes, no keys of elliptic curves, and of the schemas only bytes, text, JSON, Avro and
ProtobufNative.
Where it has no schema it reads the payload as bytes, and that is compared; keys of bytes it shows as base64.

Compression, JSON text and the key of a separated pair are compared by what is read, not by their bytes, since several
forms are right.
"""


def page(found: Mapping[str, Sequence[Cell]], date: dt.date, python: str) -> str:
    """Return the page. ``found``: the cells of each broker."""
    cells = [one for of_broker in found.values() for one in of_broker]
    names = [one.name for one in encodings()]
    names += [name for name in dict.fromkeys(one.encoding for one in cells) if name not in names]
    rows = []
    for name in names:
        mine = [one for one in cells if one.encoding == name]
        writers, readers = (
            [client for client in CLIENTS if any(getattr(one, side) == client for one in mine)]
            for side in ("writer", "reader")
        )
        wrong = sum(one.differs for one in mine)
        rows.append(f"| {name} | {_names(writers)} | {_names(readers)} | {len(mine)} | {wrong or '-'} |\n")
    head = HEAD.format(
        python=python, java=apache.VERSION, date=f"{date.day} {date:%B %Y}", cells=len(cells),
        wrong=sum(one.differs for one in cells) or "none",
    )  # fmt: skip
    wrong_cells = [
        f"- {broker}: {one.encoding}, {one.writer} to {one.reader or '-'}: {one.wrong}\n"
        for broker, of_broker in found.items() for one in of_broker if one.differs
    ]  # fmt: skip
    others = {(one.encoding, one.writer, one.reader): one.why for one in cells if one.why}
    apart = [f"- {name}, {writer} to {reader}: {why}.\n" for (name, writer, reader), why in others.items()]
    between = "\n## Between clients that are not ours\n\n" + "".join(apart) if apart else ""
    return (
        head + "".join(rows) + TAIL + between + ("\n## What differs\n\n" + "".join(wrong_cells) if wrong_cells else "")
    )


def _names(clients: Sequence[str]) -> str:
    return "all four" if tuple(clients) == CLIENTS else ", ".join(clients)


def write(found: Mapping[str, Sequence[Cell]]) -> Path:
    """Write the page, and return its path."""
    PAGE.write_text(page(found, dt.datetime.now(dt.UTC).date(), importlib.metadata.version("pulsar-client")))
    return PAGE
