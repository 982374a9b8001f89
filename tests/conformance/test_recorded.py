"""Our broker against what Apache Pulsar answered, as recorded in `recorded/` by `make oracle ARGS=--record`.

Needs neither Java nor Maven. All probes are asked side by side before the first test; each is then a test of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.conformance import differences, recording
from tests.conformance.answers import Json
from tests.conformance.conftest import TIMED, told_in_time
from tests.conformance.probe import Probe
from tests.conformance.probes import REGISTRY

RECORDED = recording.read()
ON_PURPOSE = differences.on_purpose()


def test_every_probe_is_recorded_and_every_record_has_a_probe() -> None:
    assert set(RECORDED) == set(REGISTRY)


def test_no_recorded_probe_failed() -> None:
    assert [id_ for id_, said in RECORDED.items() if isinstance(said, dict) and "did not finish" in said] == []


def test_every_name_is_one_of_a_probe() -> None:
    assert {*ON_PURPOSE, *TIMED} <= set(REGISTRY)


@pytest.mark.parametrize("probe", REGISTRY.values(), ids=REGISTRY)
def test_same_answer(probe: Probe, answers: Mapping[str, Json]) -> None:
    def judge(said: Json) -> differences.Verdict:
        return differences.judge(RECORDED[probe.id], said, ON_PURPOSE.get(probe.id, ()))

    verdict = judge(told_in_time(probe, answers[probe.id], lambda said: not judge(said).to_mend))
    assert not verdict.to_mend, f"{probe.about} ({', '.join(probe.rules)})\n" + "\n".join(map(str, verdict.to_mend))
    assert not verdict.gone, f"{probe.id} no longer differs: take it off docs/differences.md"
