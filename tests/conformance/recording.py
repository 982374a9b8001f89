"""Apache Pulsar's answers as data: one file per module of probes in tests/conformance/recorded.

A file holds, by probe id, the rules that the probe tests and what Apache Pulsar said; plus the version that said it. It
is written by `--record` only and never edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tools.servers.apache import VERSION

from tests.conformance.answers import Json
from tests.conformance.probe import REGISTRY, Probe

LINE_LENGTH = 118
SHORT = 30
FOLDER = Path(__file__).resolve().with_name("recorded")


def subject(probe: Probe) -> str:
    """The module that a probe stands in: the name of its file."""
    return probe.question.__module__.rpartition(".")[2]


def canonical(answer: Json) -> Json:
    """The answer as it is after a trip through JSON: tuples are lists, keys are text."""
    return json.loads(json.dumps(answer))


def fill(items: list[str], width: int) -> list[str]:
    """The items joined into as few lines as fit the width."""
    lines = [items[0]]
    for item in items[1:]:
        joined = f"{lines[-1]}, {item}"
        if len(joined) < width:
            lines[-1] = joined
        else:
            lines.append(item)
    return lines


def layout(value: Json, indent: int = 0) -> str:
    """JSON for people who read a diff: whatever fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= LINE_LENGTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + 1
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {layout(each, inner)}" for key, each in value.items()]
    elif all(len(json.dumps(each, ensure_ascii=False)) <= SHORT for each in value):
        # a hundred short things fill lines instead of standing on a line each
        parts = fill([json.dumps(each, ensure_ascii=False) for each in value], LINE_LENGTH - inner)
    else:
        parts = [layout(each, inner) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    body = ",\n".join(" " * inner + part for part in parts)
    return f"{opening}\n{body}\n{' ' * indent}{closing}"


def write(answers: Mapping[str, Json], folder: Path = FOLDER) -> list[Path]:
    """Put these answers into their files; what the files hold of probes that still exist stays."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, Json]] = {}
    kept = {id_: answer for id_, answer in read(folder).items() if id_ in REGISTRY}
    for id_, answer in sorted({**kept, **answers}.items()):
        probe = REGISTRY[id_]
        files.setdefault(subject(probe), {})[id_] = {"rules": list(probe.rules), "answer": canonical(answer)}
    paths = []
    for old in folder.glob("*.json"):
        if old.stem not in files:
            old.unlink()
    for name, probes in sorted(files.items()):
        path = folder / f"{name}.json"
        document = {"answered by": f"Apache Pulsar {VERSION}", "probes": probes}
        path.write_text(layout(document) + "\n")
        paths.append(path)
    return paths


def read(folder: Path = FOLDER) -> dict[str, Json]:
    """Every recorded answer by probe id."""
    answers: dict[str, Json] = {}
    for path in sorted(folder.glob("*.json")):
        for id_, held in json.loads(path.read_text())["probes"].items():
            answers[id_] = held["answer"]
    return answers
