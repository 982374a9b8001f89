"""What one connection sends, however malformed, never has an effect on another."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.connection.listener import Listener
from magnetar.broker.connection.session import Session
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.history_check import Order, Rules
from magnetar.testing.rawclient import RawClient, make_entry
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import T, World, caught, run_seeds

S = "sub"


def attack(world: World) -> bytes:
    """Legal frames in a foolish order, frames with changed bytes, or noise."""
    rng = world.rng
    frames = [
        codec.encode(c.CommandConnect("x", 21)),
        codec.encode(c.CommandProducer(T, rng.randint(0, 2), rng.randint(0, 3))),
        codec.encode(c.CommandSubscribe(T, S, c.SubType(rng.randint(0, 3)), 1, 1)),
        codec.encode(c.CommandFlow(rng.randint(0, 2), rng.choice((0, 1, 2**32 - 1)))),
        codec.encode(
            c.CommandAck(1, c.AckType(rng.randint(0, 1)), (c.MessageIdData(rng.randint(0, 9), rng.randint(-1, 99)),))
        ),
        codec.encode(c.CommandCloseConsumer(rng.randint(0, 9), 1)),
        codec.encode(c.CommandCloseProducer(rng.randint(0, 9), 1)),
        codec.encode(c.CommandSeek(rng.randint(0, 9), 1, c.MessageIdData(-1, -1))),
        codec.encode(c.CommandUnsubscribe(rng.randint(0, 9), 1)),
        codec.encode(
            c.CommandSend(0, 1, 1, None, False, None, False, None, make_entry(b"evil", producer="x", sequence_id=1))
        ),
        b"\x7f\xff\xff\xff" + rng.randbytes(8),
        rng.randbytes(rng.randint(1, 60)),
    ]
    # an honest SEEK or ACK by an admitted consumer has its effect by right: the attacker never gets that far
    chosen = bytearray(frames[0] if rng.random() < 0.8 else b"")
    for frame in rng.choices(frames[1:], k=rng.randint(1, 6)):
        piece = bytearray(frame)
        if rng.random() < 0.5:
            piece[rng.randrange(len(piece))] ^= 1 << rng.randrange(8)
        chosen += piece
    return bytes(chosen)


async def attacked(world: World) -> None:
    """Honest clients on their topic, attackers beside them."""
    await world.boot()
    consumer = Subscriber(world, "c", T, S, c.SubType.Exclusive, Habit(confirmed=1.0))
    publisher = Publisher(world, "p", T)
    world.start(consumer.run())
    await asyncio.sleep(0.2)
    world.start(publisher.run(150))
    refused = 0
    for _ in range(25):
        client = await RawClient.open(HOST, PORT, patience_s=2.0)
        client.on_command = lambda command: None
        client.say_bytes(attack(world).replace(b"default/t", b"default/z"))
        await asyncio.sleep(world.rng.uniform(0.0, 0.1))
        refused += client.lost.done()
        if world.rng.random() < 0.5:
            client.transport.abort()
    await world.end((T, S))
    world.verify(Rules(order=Order.TOPIC))
    assert refused > 3
    assert consumer.lives == 1, "the honest consumer lost its connection"
    assert publisher.receipts == 150
    assert world.backlog(T, S) == 0
    assert not world.loop.failures, world.loop.failures


def test_malformed_bytes_harm_only_their_sender() -> None:
    run_seeds(attacked, 25)


def test_a_broker_that_panics_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    close = Session.close

    def everybody(self: Session, reason: str) -> None:
        close(self, reason)
        for listener in list(_open):
            close(listener.session, "panic")

    _open: set[Listener] = set()
    made = Listener.connection_made

    def note(self: Listener, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        _open.add(self)

    monkeypatch.setattr(Listener, "connection_made", note)
    monkeypatch.setattr(Session, "close", everybody)
    caught(attacked, lambda broker: None)
