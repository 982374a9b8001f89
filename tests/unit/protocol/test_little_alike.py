"""Commands of which few in a row are laid out alike: the look for more does not cost more than it saves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.alike_commands import runs, turns
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import EntryMetadata, build_entry

ENTRY = build_entry(EntryMetadata("p", 0, 1), b"payload")
COUNT = 1200
SIGHTED = 4
"""Commands in a row that pay for the look."""


def send(producer_id: int, sequence_id: int, messages: int = 1) -> bytes:
    return codec.encode(c.CommandSend(producer_id, sequence_id, messages, None, False, None, False, None, ENTRY))


def ack(consumer_id: int, entry: int, ledger: int = 7, partition: int = -1) -> bytes:
    ids = (c.MessageIdData(ledger, entry, partition),)
    return codec.encode(c.CommandAck(consumer_id, c.AckType.Individual, ids))


MIXTURES = {
    "batches of one producer": lambda i: send(1, i, 5),
    "batches of two producers": lambda i: send(i % 2, i, 5),
    "large batches": lambda i: send(1, i, 500),
    "pairs of one producer": lambda i: send(i // 2 % 60, i % 100),
    "one and a pair": lambda i: send((1, 2, 2)[i % 3], i % 100),
    "numbers of two lengths": lambda i: send(1, 5 if i % 2 else 300),
    "numbers of two lengths in turn": lambda i: send(1 + i % 2, 5 if i // 2 % 2 else 300),
    "producers that begin alike": lambda i: send(128 + i % 2 * 128, 5 if i // 2 % 2 else 300),
    "entries of two ledgers": lambda i: ack(1, 5, i % 2),
    "pairs of two ledgers": lambda i: ack(1, 5, i // 2),
    "pairs of one consumer": lambda i: ack(i // 2 % 60, i % 100),
    "one and a pair of consumers": lambda i: ack((1, 2, 2)[i % 3], i % 100),
    "of partitions": lambda i: ack(1, 5, partition=3),
    "of partitions in turn": lambda i: ack(i % 2, 5, partition=3),
    "SENDs and ACKs": lambda i: ack(1, 5) if i % 2 else send(1, 5),
}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where it was found out how a command is laid out."""
    found: list[int] = []
    for module in (runs, turns):
        for name in ("send_layout", "ack_layout"):
            layout: Callable[[bytes, int], object] = getattr(module, name)

            def counted(data: bytes, at: int, layout: Callable[[bytes, int], object] = layout) -> object:
                found.append(at)
                return layout(data, at)

            monkeypatch.setattr(module, name, counted)
    return found


@pytest.mark.parametrize("mixture", MIXTURES)
def test_looks_are_few(mixture: str, looks: list[int]) -> None:
    frames = b"".join(map(MIXTURES[mixture], range(COUNT)))
    Decoder(from_client=True).feed(frames)
    assert len(looks) <= COUNT // 16


@pytest.mark.parametrize("mixture", MIXTURES)
def test_no_command_is_lost_by_it(mixture: str) -> None:
    frames = b"".join(map(MIXTURES[mixture], range(COUNT)))
    found: list[c.Command] = []
    for some in Decoder(from_client=True).feed(frames):
        found += some.commands() if isinstance(some, c.SendRun | c.AckRun) else [some]
    assert found == Decoder().feed(frames)


def test_what_pays_for_the_look_is_found_each_time(looks: list[int]) -> None:
    frames = b"".join(send(i // SIGHTED % 60, i % 100) for i in range(COUNT))
    found = Decoder(from_client=True).feed(frames)
    assert len(found) == COUNT // SIGHTED
    assert len(looks) == COUNT // SIGHTED


@pytest.mark.parametrize("odd", [send(1, 5, 5), ack(1, 5, partition=3)])
def test_what_is_alike_is_found_again_behind_others(odd: bytes) -> None:
    """Soon after few of them, and after however many."""
    alike = b"".join(send(7, i) for i in range(100))
    for before, alone in ((1, 1), (3, 8), (1000, 64)):
        found = Decoder(from_client=True).feed(odd * before + alike)
        assert len(found) <= before + alone + 1
        assert isinstance(found[-1], c.SendRun)
