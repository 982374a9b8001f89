"""Apache Pulsar's answers as data: one file per module of probes in tests/oracle/recorded.

A file holds, by probe id, the rules that the probe tests and what Apache Pulsar said; plus the version that said it. It
is written by `--record` only and never edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tools.oracle.answers import Json
from tools.oracle.probe import REGISTRY, Probe
from tools.servers.apache import VERSION

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "oracle" / "recorded"


def subject(probe: Probe) -> str:
    """The module that a probe stands in: the name of its file."""
    return probe.question.__module__.rpartition(".")[2]


def canonical(answer: Json) -> Json:
    """The answer as it is after a trip through JSON: tuples are lists, keys are text."""
    return json.loads(json.dumps(answer))


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
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        paths.append(path)
    return paths


def read(folder: Path = FOLDER) -> dict[str, Json]:
    """Every recorded answer by probe id."""
    answers: dict[str, Json] = {}
    for path in sorted(folder.glob("*.json")):
        for id_, held in json.loads(path.read_text())["probes"].items():
            answers[id_] = held["answer"]
    return answers
