"""A sample of faults and what became of each: drawn once by its seed, kept under ``build/mutants``, gone on with later.

A fault that was noticed stays so; one that survived is judged again when tests have changed.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tools.mutants.faults import Fault, faults_of
from tools.mutants.footprint_map import KEPT
from tools.mutants.judge import Judgement
from tools.mutants.tree import ROOT

EQUIVALENT: Final = Path(__file__).with_name("equivalent.tsv")


def equivalents() -> dict[str, str]:
    """Faults that change nothing which anybody was promised, with the reason."""
    listed = [line.split("\t") for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    return {"\t".join(fields[:4]): fields[4] for fields in listed}


@dataclass(frozen=True, slots=True)
class Drawn:
    """One fault of a sample."""

    number: int
    area: str
    name: str
    start: int
    text: str
    """With the name, tells faults of one line apart."""


class Sample:
    """Of one seed and size, and of one part of all faults."""

    def __init__(
        self,
        faults: Callable[[], Mapping[str, Sequence[Fault]]],
        count: int,
        seed: int,
        kept: Path = KEPT,
        part: str = "",
    ) -> None:
        """Faults known to change nothing are not drawn; ``part`` names what ``faults`` leaves of all of them."""
        self._folder = kept / "-".join(filter(None, ("sample", str(seed), str(count), part)))
        self._folder.mkdir(parents=True, exist_ok=True)
        listed = self._folder / "drawn.json"
        if not listed.exists():
            known = equivalents()
            drawn: list[Drawn] = []
            for area, possible in faults().items():
                wanted = [fault for fault in possible if fault.name not in known]
                for fault in random.Random(seed).sample(wanted, min(count, len(wanted))):
                    drawn.append(Drawn(len(drawn), area, fault.name, fault.start, fault.text))
            found = {"commit": _commit(), "drawn": [asdict(one) for one in drawn]}
            listed.write_text(json.dumps(found, indent=1))
        found = json.loads(listed.read_text())
        self.commit: str = found["commit"]
        self.drawn = [Drawn(**one) for one in found["drawn"]]
        self._tests = _digest_of_tests()

    def fault(self, one: Drawn) -> Fault | None:
        """As it would be put into the product of now; None if its line is no more."""
        path, _, _, after = one.name.split("\t")
        if not (ROOT / path).exists():
            return None
        same = [
            fault
            for fault in faults_of(path, (ROOT / path).read_bytes(), after=after)
            if fault.name == one.name and fault.text == one.text
        ]
        return min(same, key=lambda fault: abs(fault.start - one.start), default=None)

    def judgement(self, one: Drawn) -> Judgement | None:
        """What is known of it."""
        path = self._folder / f"{one.number}.json"
        if not path.exists():
            return None
        found = json.loads(path.read_text())
        return Judgement(found["verdict"], found["by"], found["seconds"], found["stage"])

    def is_open(self, one: Drawn, stage: str) -> bool:
        """Whether it has to be judged by the tests of this stage."""
        if one.name in equivalents():
            return False
        path = self._folder / f"{one.number}.json"
        if not path.exists():
            return stage == "quick"
        found = json.loads(path.read_text())
        if found["verdict"] != "survived":
            return False
        return bool(found["tests"] != self._tests or (stage == "whole" and found["stage"] == "quick"))

    def keep(self, one: Drawn, judgement: Judgement) -> None:
        """Written at once: whoever is cut off loses one judgement."""
        path = self._folder / f"{one.number}.json"
        path.with_suffix(".new").write_text(json.dumps({**asdict(one), **asdict(judgement), "tests": self._tests}))
        path.with_suffix(".new").rename(path)


def _digest_of_tests() -> str:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, check=True)
    return found.stdout.decode().strip()
