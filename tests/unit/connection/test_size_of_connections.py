"""What a connection is made of stays small, because thousands may be open: no table of attributes of its own, and no
container that is large while it is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.broker.connection.listener import Connections
from magnetar.protocol import commands as c
from tests.support.memory_peer import MemoryPeer
from tests.support.object_parts import bytes_of, parts_of, with_own_tables
from tests.support.real_broker import RealBroker, run_on_broker

ROOMS = ("magnetar.broker.connection.", "magnetar.protocol.", "magnetar.admin.http.")
MANY = 40


async def join(broker: RealBroker, number: int, *, opens: bool) -> MemoryPeer:
    """One more connection; with a producer and a consumer if it ``opens`` something."""
    peer = MemoryPeer(broker)
    if opens:
        topic = "persistent://public/default/t"
        peer.say(c.CommandProducer(topic=topic, producer_id=1, request_id=1, producer_name=f"p{number}"))
        await peer.answered(c.CommandProducerSuccess)
        peer.say(c.CommandSubscribe(topic, "s", sub_type=c.SubType.Shared, consumer_id=1, request_id=2))
        await peer.answered(c.CommandSuccess)
    return peer


@pytest.mark.parametrize(("opens", "most"), [(False, 2_100), (True, 2_600)])
def test_a_connection_is_small(tmp_path: Path, opens: bool, most: int) -> None:
    async def scenario(broker: RealBroker) -> None:
        peers = [await join(broker, number, opens=opens) for number in range(2)]
        connections = broker.node.broker.connections
        assert isinstance(connections, Connections)
        before = bytes_of(parts_of(connections, ROOMS))
        peers += [await join(broker, number, opens=opens) for number in range(2, 2 + MANY)]
        parts = parts_of(connections, ROOMS)
        assert {"Listener", "Session", "Decoder", "Outbox"} <= {type(part).__name__ for part in parts}
        assert not with_own_tables(parts)
        each = (bytes_of(parts) - before) / MANY
        assert 500 < each < most, each

    run_on_broker(tmp_path, scenario)
