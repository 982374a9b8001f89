"""The short form of ``make hostile``, and proof that its judges condemn what they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.programme import ATTACKS, Outcome, Programme, name_of

_SLOW_TO_JUDGE = {"sockets.half_requests"}
"""Wait for the broker's time-outs: `tests/unit/connection` judges them."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nobody_else_notices_any_attack(tmp_path: Path) -> None:
    programme = Programme(tmp_path, scale=0.02)
    outcomes = programme.run([attack for attack in ATTACKS if name_of(attack) not in _SLOW_TO_JUDGE])
    faults = [f"{outcome.name}: {fault}" for outcome in outcomes for fault in outcome.faults]
    assert not faults + programme.faults, "\n".join(faults + programme.faults)


def test_an_outcome_with_a_fault_says_so() -> None:
    assert Outcome("a.b").line().endswith("ok")
    assert "lost" in Outcome("a.b", faults=["lost"]).line()
