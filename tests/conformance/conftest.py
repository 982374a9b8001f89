"""A magnetar broker per profile of the oracle's probes, as a child process on ports of its own choosing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from tests.conformance import brokers, recording
from tests.conformance.answers import Json
from tests.conformance.probe import Probe

JOBS = 24
"""Probes asked at once of one broker: nearly all of a probe's time is waiting for what must not come."""


TIMED = ("busy-with-a-dead-connection", "delayed-nack", "failover-first-consumer", "failover-joins-waiting")
"""Probes whose answer says how long something took: what another process held up is asked again, alone."""
AGAIN = 5


def _ask(profile: str, probes: Sequence[Probe]) -> dict[str, Json]:
    with brokers.running("magnetar", profile) as server:
        return {probe.id: recording.canonical(said) for probe, said in brokers.ask(server, probes, JOBS)}


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest) -> Mapping[str, Json]:
    """Our answers by probe id, of every probe that a test of this run wants; all profiles side by side."""
    wanted = [
        cast(Probe, item.callspec.params["probe"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "answers" in item.fixturenames
    ]
    profiles = brokers.by_profile(wanted)
    with ThreadPoolExecutor(len(profiles)) as pool:
        found = pool.map(lambda each: _ask(*each), profiles.items())
        return {id_: said for said_of_profile in found for id_, said in said_of_profile.items()}


def told_in_time(probe: Probe, said: Json, good: Callable[[Json], bool]) -> Json:
    """What the probe said, or says when it is asked alone, if it measures time and others may have been in its way."""
    for _ in range(AGAIN if probe.id in TIMED else 0):
        if good(said):
            break
        said = _ask(probe.profile, [probe])[probe.id]
    return said
