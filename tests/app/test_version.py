"""The version stands in one place, ``magnetar.__version__``; everything that shows a version takes it from there."""

from __future__ import annotations

import tomllib
from pathlib import Path

from magnetar import __version__
from magnetar.admin.local_broker.broker import local_ports
from magnetar.client.handshake import CLIENT_VERSION
from magnetar.config.settings import Settings
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClient
from tests.admin.conftest import world
from tests.sim.world import World, run_seed

ROOT = Path(__file__).resolve().parents[2]
ITS_PLACE = ROOT / "src/magnetar/__init__.py"


def test_the_version_is_written_once() -> None:
    holders = [path for path in (ROOT / "src").rglob("*.py") if __version__ in path.read_text("utf-8")]
    assert holders == [ITS_PLACE]


def test_the_wheel_takes_it_from_there() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in described["project"]
    assert described["project"]["dynamic"] == ["version"]
    assert ROOT / described["tool"]["hatch"]["version"]["path"] == ITS_PLACE


def test_rest_and_the_client_show_it() -> None:
    rest = world(Settings()).rest
    assert rest.get("/openapi.json").json()["info"]["version"] == __version__
    assert f"magnetar-client-{__version__}" == CLIENT_VERSION


def test_connected_and_metrics_show_it() -> None:
    async def simulation(world: World) -> None:
        await world.boot()
        client = await RawClient.open(HOST, PORT)
        connected = await client.connect()
        assert connected.server_version == f"Pulsar Server magnetar {__version__}"
        client.transport.close()
        broker = world.machine.broker
        measured = local_ports(broker.service, broker.rates, broker.connections).broker.measurements()
        shown = [dict(one.labels) for one in measured if one.family == "pulsar_version_info"]
        assert [labels["version"] for labels in shown] == [__version__]

    run_seed(simulation, 1)
