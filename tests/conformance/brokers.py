"""The brokers that are asked: one per profile, started empty, stopped when all probes of the profile are through.

Apache Pulsar answers PRODUCER and SUBSCRIBE with ServiceNotReady until some LOOKUP made it take the topic's bundle.
Clients always look up first; probes do not, so every bundle of their namespace is looked up once before them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.servers import apache, lite, magnetar
from tools.servers.process import HOST, Server

from tests.conformance import tokens
from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, PROFILES, Probe
from tests.conformance.wire import Wire

# four bundles by default: the chance that 64 names miss one is 4e-8
LOOKUPS = 64
KINDS = ("apache", "magnetar", "pulsar-lite")


@contextmanager
def running(kind: str, profile: str, command: str = magnetar.COMMAND) -> Iterator[Server]:
    """An empty broker of that kind with the settings of that profile."""
    settings = PROFILES[profile]
    with tempfile.TemporaryDirectory(prefix=f"magnetar-oracle-{kind}-") as folder:
        directory = Path(folder)
        if kind == "apache":
            server = apache.start(directory, settings=settings)
        elif kind == "pulsar-lite":
            server = lite.start(directory)
        else:
            server = magnetar.start(directory, settings=settings, command=command)
        with server:
            own_bundles(server, tokens.fields_for(settings))
            yield server


def own_bundles(server: Server, credentials: Mapping[str, Json]) -> None:
    """LOOKUP of so many names that each of a namespace's few bundles is among them."""
    with Wire.open((HOST, server.broker_port)) as wire:
        wire.connect(**credentials)
        for number in range(LOOKUPS):
            wire.request("LOOKUP", topic=f"persistent://{NAMESPACE}/bundle-{number}")


def by_profile(probes: Iterable[Probe]) -> dict[str, list[Probe]]:
    grouped: dict[str, list[Probe]] = {}
    for each in probes:
        grouped.setdefault(each.profile, []).append(each)
    return grouped


def ask(server: Server, probes: Iterable[Probe], jobs: int) -> Iterator[tuple[Probe, Json]]:
    """Answers in the order of the probes, ``jobs`` of them asked at a time."""
    chosen = list(probes)
    with ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda each: each.ask(server.broker_port, server.http_port), chosen)
        yield from zip(chosen, answers, strict=True)
