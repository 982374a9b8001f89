"""What the doctor says of numbers: each bound from both sides, and a next step wherever something is wrong."""

from __future__ import annotations

import pytest

from magnetar.cli.doctor import judgements as j
from magnetar.cli.doctor.symptom import Level, Symptom

GIB = 1 << 30


@pytest.mark.parametrize(
    ("symptom", "level"),
    [
        (j.python((3, 10), "uvloop", "pure build"), Level.FAILURE),
        (j.python((3, 11), "uvloop", "pure build"), Level.OK),
        (j.python((3, 13), "asyncio", "pure build"), Level.NOTE),
        (j.descriptors(64, 128), Level.FAILURE),
        (j.descriptors(64, 1024), Level.WARNING),
        (j.descriptors(64, 1 << 20), Level.OK),
        (j.memory(None), Level.NOTE),
        (j.memory(100 << 20), Level.WARNING),
        (j.memory(8 * GIB), Level.OK),
        (j.space(GIB - 1, "ext4"), Level.FAILURE),
        (j.space(GIB, "ext4"), Level.WARNING),
        (j.space(100 * GIB, "ext4"), Level.OK),
        (j.space(100 * GIB, ""), Level.OK),
        (j.space(100 * GIB, "tmpfs"), Level.WARNING),
        (j.space(100 * GIB, "nfs4"), Level.WARNING),
        (j.sync_times([1.0, 2.0, 90.0]), Level.OK),
        (j.sync_times([30.0, 30.0, 0.1]), Level.WARNING),
        (j.sync_times([0.001] * 9), Level.WARNING),
        (j.port(6650, "brokerServicePort", None), Level.OK),
        (j.port(6650, "brokerServicePort", "a broker"), Level.NOTE),
        (j.clock_skew(None), Level.OK),
        (j.clock_skew(4.9), Level.OK),
        (j.clock_skew(-60.0), Level.WARNING),
        (j.java(None), Level.NOTE),
        (j.java(11), Level.WARNING),
        (j.java(17), Level.OK),
        (j.spark(None), Level.NOTE),
        (j.spark("3.5.1"), Level.WARNING),
        (j.spark("4.3.0"), Level.OK),
        (j.spark("4.3.0", archived=False), Level.NOTE),
    ],
)
def test_bounds(symptom: Symptom, level: Level) -> None:
    """Each judgement has its level; what is wrong has a next step."""
    assert symptom.level is level and symptom.says
    if level in (Level.WARNING, Level.FAILURE):
        assert symptom.next_step


def test_the_side_of_the_clock_is_named() -> None:
    """Ahead and behind are not the same."""
    assert "ahead of" in j.clock_skew(60).says and "behind" in j.clock_skew(-60).says


def test_a_port_that_is_taken_names_its_own_setting() -> None:
    """8080 is moved by ``webServicePort``; both notes named ``brokerServicePort``."""
    taken = j.port(8080, "webServicePort", "a broker")
    assert taken.next_step == "a second broker needs another: --set webServicePort=…"
