"""The manifest of a micro-batch, and the chain in which each manifest seals the previous one. Pure.

    {"v": 1, "pipeline": "late", "query": "<id>", "batch": 3,
     "sources": {"flights": {"start": {"<topic-partition>": "12:400:0"}, "end": {...},
                             "rows": {"<topic-partition>": 1000}, "prints": {"<topic-partition>": "<16 hex>"}}},
     "checks": {"flights": {"rows": 1000, "dead": 3, "dropped": 0, "causes": {"has-origin": 3}}},
     "outputs": {"late": {"kind": "topic", "target": "persistent://...", "rows": 997, "print": "<16 hex>",
                          "of": ["flights"]}},
     "times": {"began_ms": ..., "ended_ms": ...}, "previous": "<64 hex>", "fingerprint": "<64 hex>"}

Ranges are half-open, as in Spark's checkpoint (`spark.offset_json`). A *print* is the sum of the 64-bit hashes of
rows, modulo 2^64: it does not depend on their order, and the print of many batches is the sum of theirs. ``of`` names
the checks that the rows of an output went through, the source first, if every row that passed them is in the output;
it is null if the rows were selected, joined or aggregated on the way. ``by`` is "names-us" where the print is that of
`expressions.row_print`, which can be computed again from a table.

``fingerprint`` is SHA-256 over ``previous`` and the rest in canonical form, and ``previous`` is the fingerprint of the
previous batch, so no manifest can be changed, left out or inserted without the next one showing it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError

VERSION: Final = 1
FIRST: Final = "0" * 64
"""The ``previous`` of the first manifest."""
BY_NAMES: Final = "names-us"
_MASK: Final = (1 << 64) - 1


class ManifestError(InvalidValueError):
    """A file is no manifest, or not of this version."""


def print_text(number: int) -> str:
    """Return a sum of row hashes as it is stored."""
    return f"{number & _MASK:016x}"


@dataclass(frozen=True, slots=True)
class SourcePart:
    """What was read of one source, by topic-partition."""

    start: Mapping[str, str]
    end: Mapping[str, str]
    rows: Mapping[str, int]
    prints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CheckPart:
    """What expectations and decoding made of the rows at one place."""

    rows: int
    """Rows that arrived."""
    dead: int
    dropped: int
    causes: Mapping[str, int]

    @property
    def passed(self) -> int:
        return self.rows - self.dead - self.dropped


@dataclass(frozen=True, slots=True)
class OutputPart:
    """What was written to one sink, or to the dead-letter topic."""

    kind: str
    target: str
    rows: int
    print: str
    of: tuple[str, ...] | None
    by: str | None = None
    """`BY_NAMES`, or None: another print, or one of an earlier release."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one micro-batch read, judged and wrote."""

    pipeline: str
    query: str
    batch: int
    sources: Mapping[str, SourcePart]
    checks: Mapping[str, CheckPart]
    outputs: Mapping[str, OutputPart]
    times: Mapping[str, int]
    previous: str
    fingerprint: str = ""

    @property
    def rows_in(self) -> int:
        return sum(sum(one.rows.values()) for one in self.sources.values())

    @property
    def dead(self) -> int:
        return sum(one.dead for one in self.checks.values())

    @property
    def dropped(self) -> int:
        return sum(one.dropped for one in self.checks.values())

    def sealed(self) -> Manifest:
        """Return the manifest with its fingerprint."""
        return replace(self, fingerprint=self.digest())

    def digest(self) -> str:
        """Compute the fingerprint."""
        content = {name: value for name, value in asdict(self).items() if name not in ("previous", "fingerprint")}
        for part in content["outputs"].values():
            # Earlier releases did not have it.
            if part["by"] is None:
                del part["by"]
        text = json.dumps({"v": VERSION, **content}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(f"{self.previous}\n{text}".encode()).hexdigest()


def _check_kinds(manifest: Manifest) -> None:
    """Look at the kind of every value. Raises TypeError, KeyError and what a position that is none raises."""
    numbers: list[object] = [manifest.batch, manifest.times["began_ms"], manifest.times["ended_ms"]]
    texts: list[object] = [manifest.pipeline, manifest.query, manifest.previous, manifest.fingerprint]
    for source in manifest.sources.values():
        for place in (*source.start.values(), *source.end.values()):
            ReadPosition.parse(place)
        numbers += source.rows.values()
        _ = [int(one, 16) for one in source.prints.values()]
    for check in manifest.checks.values():
        numbers += [check.rows, check.dead, check.dropped, *check.causes.values()]
    for output in manifest.outputs.values():
        numbers.append(output.rows)
        texts += [output.kind, output.target, *(output.of or ())]
        int(output.print, 16)
    for one in numbers:
        if type(one) is not int:
            raise TypeError(f"{one!r} is no number")
    for one in texts:
        if not isinstance(one, str):
            raise TypeError(f"{one!r} is no text")


def to_text(manifest: Manifest) -> str:
    """Encode a manifest as its file."""
    return json.dumps({"v": VERSION, **asdict(manifest)}, indent=1, ensure_ascii=False) + "\n"


def from_text(text: str, where: str) -> Manifest:
    """Parse a manifest's file. Raises ManifestError that names ``where``."""
    try:
        given: dict[str, Any] = json.loads(text)
        if given.pop("v") != VERSION:
            raise ManifestError(f"{where} was written by another release; use that one")
        given["sources"] = {name: SourcePart(**part) for name, part in given["sources"].items()}
        given["checks"] = {name: CheckPart(**part) for name, part in given["checks"].items()}
        given["outputs"] = {
            name: OutputPart(**{**part, "of": None if part["of"] is None else tuple(part["of"])})
            for name, part in given["outputs"].items()
        }
        found = Manifest(**given)
        _check_kinds(found)
        return found
    except ManifestError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidValueError) as error:
        raise ManifestError(f"{where} is no manifest: {type(error).__name__}: {error}") from None
