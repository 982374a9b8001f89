"""What Apache Pulsar's ``pulsar-admin`` sent for given words, and whether ours sends the same."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from tests.support.admin_recorder import run_admin

HERE = Path(__file__).parent.parent / "unit/cli/admin"


class Vector(NamedTuple):
    """One row of vectors.tsv."""

    words: list[str]
    outcome: str
    requests: list[list[Any]]


def _vectors() -> list[Vector]:
    rows = [line.split("\t") for line in (HERE / "vectors.tsv").read_text().splitlines() if not line.startswith("#")]
    return [
        Vector(shlex.split(words.replace("FILES", str(HERE / "files"))), outcome, json.loads(requests))
        for words, outcome, requests in rows
    ]


VECTORS = _vectors()


def _comparable(request: list[Any]) -> list[Any]:
    """Queries and sets have no order."""
    method, path, query, *body = request
    return [method, path, sorted(parse_qsl(query, keep_blank_values=True)), *(_unordered(one) for one in body)]


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(one) for one in value), key=repr)
    return value


def differs(vector: Vector) -> str | None:
    ran = run_admin(vector.words)
    ours = [_comparable(one) for one in ran.requests]
    theirs = [_comparable(one) for one in vector.requests]
    theirs = [one for at, one in enumerate(theirs) if one != theirs[at - 1] or not at]  # we ask nothing twice
    if any(one[1].endswith("partitioned") or one[1].count("/") == 5 for one in theirs):
        ours, theirs = sorted(ours), sorted(theirs)
    if vector.outcome == "begins":
        return None if ours[: len(theirs)] == theirs else f"{ours} begins not as {theirs} {ran.err[:200]}"
    if ours != theirs:
        return f"ours {ours}, theirs {theirs} {ran.err[:200]}"
    code = 1 if vector.outcome == "refused" else 0
    return None if ran.code == code else f"exit code {ran.code}: {ran.err[:200]}"
