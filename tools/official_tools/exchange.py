"""One request of a tool and its answer, and the file that holds those of a whole run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.official_tools.said import Said

FILE = Path(__file__).with_name("recorded.jsonl.gz")
"""The requests of Apache Pulsar's own tools and what Apache Pulsar answered, line by line of the list."""


class Exchange(NamedTuple):
    """A request and its answer."""

    method: str
    target: str
    kind: str
    """The request's content type; empty without one."""
    body: str
    status: int
    answer_kind: str
    headers: dict[str, str]
    """Those of Pulsar's own, ``X-Pulsar-…``."""
    answer: str
    """One character for each byte (latin-1)."""

    def replaced(self, values: Mapping[str, str]) -> Exchange:
        """The same with the name of each value, which differs in every run, in its place; answers stay as they were."""
        target, body = self.target, self.body
        for value, name in values.items():
            target, body = target.replace(value, name), body.replace(value, name)
        return self._replace(target=target, body=body)


class RecordedLine(NamedTuple):
    """What became of one line of the list."""

    number: int
    text: str
    """The tool and the arguments as they stand in the list."""
    said: Said
    asked: list[Exchange]


def write(lines: Sequence[RecordedLine], file: Path = FILE) -> None:
    """Write a recording; the same lines give the same bytes."""
    texts = [json.dumps([line.number, line.text, line.said, line.asked], separators=(",", ":")) for line in lines]
    file.write_bytes(gzip.compress("\n".join(texts).encode(), 9, mtime=0))


def read(file: Path = FILE) -> list[RecordedLine]:
    """Every line of a recording, in order."""
    found = []
    for text in gzip.decompress(file.read_bytes()).decode().splitlines():
        number, line, said, asked = json.loads(text)
        found.append(RecordedLine(number, line, Said(*said), [Exchange(*one) for one in asked]))
    return found
