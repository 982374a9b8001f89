"""What an entry costs between the sender's bytes and the consumer's acknowledgement, in instructions of Python.

Clients whose sockets are memory hand a broker in this process a hundred messages at once, take them and acknowledge
each. Instructions are the same at every run and on every machine, which times are not: a feature that is off may add
none. Who has a good reason to spend more writes the new number down, and says so.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import make_entry
from tests.support.memory_peer import MemoryPeer, when
from tests.support.real_broker import RealBroker, run_on_broker

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the numbers are of the instructions of Python 3.11"
)

MESSAGES: Final = 100
ROUNDS: Final = 5
SOURCE: Final = str(Path(codec.__file__).parents[1])
TOLERANCE: Final = 1.02
"""Where a round falls apart into two turns of the loop."""


@contextmanager
def counted(found: list[int]) -> Iterator[None]:
    """Put the number of instructions that the broker's own code runs meanwhile into ``found``."""
    number = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal number
        number += event == "opcode"
        return inside

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(SOURCE) or "/testing/" in name:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(None)
        found.append(number)


async def work(broker: RealBroker, topics: int, consumers: int, sub_type: c.SubType, messages: int = MESSAGES) -> float:
    """Instructions for each of so many messages at once, in the cheapest of some rounds after the first."""
    sender, takers = MemoryPeer(broker), [MemoryPeer(broker) for _ in range(consumers)]
    for number in range(topics):
        name = f"persistent://public/default/work-{sub_type}-{topics}-{number}"
        sender.say(c.CommandProducer(topic=name, producer_id=number, request_id=number + 1))
        await sender.answered(c.CommandProducerSuccess)
        for taker in takers:
            taker.say(
                c.CommandSubscribe(
                    topic=name, subscription="s", sub_type=sub_type, consumer_id=number, request_id=number + 1
                )
            )
            await taker.answered(c.CommandSuccess)
            taker.say(c.CommandFlow(consumer_id=number, permits=10_000))
    found: list[int] = []
    for attempt in range(ROUNDS + 1):
        first = 1 + attempt * messages
        sends = [
            c.CommandSend(
                sequence_id % topics, sequence_id, 1, None, False, None, False, None,
                make_entry(
                    b"x" * 100, producer="p", sequence_id=sequence_id,
                    key=f"{sequence_id * 7919 % 1000:04}" if sub_type == c.SubType.Key_Shared else "",
                ),
            )
            for sequence_id in range(first, first + messages)
        ]  # fmt: skip
        data = b"".join(map(codec.encode, sends))
        with counted(found):
            sender.listener.data_received(data)
            await when(lambda: sender.unheard > 0 and sum(taker.unheard for taker in takers) > 100 * messages)
            await asyncio.sleep(0.01)
        sender.hear()
        taken = [[one for one in taker.hear() if isinstance(one, c.CommandMessage)] for taker in takers]
        assert sum(map(len, taken)) == messages
        acks = [
            b"".join(
                codec.encode(c.CommandAck(one.consumer_id, c.AckType.Individual, (one.message_id,))) for one in each
            )
            for each in taken
        ]
        with counted(found):
            for taker, ack in zip(takers, acks, strict=True):
                if ack:
                    taker.listener.data_received(ack)
            await asyncio.sleep(0.02)
    rounds = [sum(pair) for pair in zip(found[2::2], found[3::2], strict=True)]
    return min(rounds) / messages


@pytest.mark.parametrize(
    ("topics", "consumers", "sub_type", "most"),
    [
        (1, 1, c.SubType.Exclusive, 252),
        (1, 4, c.SubType.Shared, 417),
        (1, 2, c.SubType.Key_Shared, 495),
        (100, 1, c.SubType.Exclusive, 2476),
    ],
    ids=["exclusive", "shared", "key shared", "many topics"],
)
def test_an_entry_costs_what_it_did(
    tmp_path: Path, topics: int, consumers: int, sub_type: c.SubType, most: int
) -> None:
    """Before commands that are alike were read in one piece it was 1,161, 1,302, 1,534 and 2,806 (decision 077).

    Ninety for each read came with decision 081, in which large messages gain several hundred.
    """

    async def steps(broker: RealBroker) -> None:
        assert await work(broker, topics, consumers, sub_type) <= most * TOLERANCE

    run_on_broker(tmp_path, steps)


def test_a_message_alone_costs_what_it_did(tmp_path: Path) -> None:
    """It has a group, a dispatch and a write of an acknowledgement for itself: what latency at low rates is made of."""

    async def steps(broker: RealBroker) -> None:
        assert await work(broker, 1, 1, c.SubType.Exclusive, messages=1) <= 5837 * TOLERANCE

    run_on_broker(tmp_path, steps)
