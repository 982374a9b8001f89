"""What a message costs our client, in instructions of Python: sent, received and acknowledged, in batches and alone.

Client and broker share a process and a loop; only the client's modules count, and what they call of the protocol.
Instructions are the same at every run and on every machine, which times are not: a feature that is off may add none.
Who has a good reason to spend more writes the new number down, and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from tools.servers.process import Server

import magnetar
from magnetar import aio
from magnetar.protocol import codec
from tests.support.real_broker import RealBroker, run_on_broker

MESSAGES: Final = 2_000
LONE: Final = 40
ROUNDS: Final = 3
TOLERANCE: Final = 1.05
"""What comes of a batch, and of a turn of the loop, depends on how the bytes arrive."""
SOURCE: Final = str(Path(codec.__file__).parents[1])
CLIENT: Final = SOURCE + "/client/"
SHARED: Final = SOURCE + "/protocol/"
pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the numbers are of the instructions of Python 3.11"
)


def of_client(frame: FrameType | None) -> bool:
    """Whether code of ours runs for the client, and not for the broker in the same loop."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(CLIENT):
            return True
        if not name.startswith(SHARED):
            return False
        frame = frame.f_back
    return False


@contextmanager
def counted(found: list[int]) -> Iterator[None]:
    """Put the number of instructions of the client meanwhile, on this thread, into ``found``."""
    number = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal number
        number += event == "opcode"
        return inside

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((CLIENT, SHARED)) or not of_client(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(None)
        found.append(number)


async def work(client: aio.Client) -> dict[str, float]:
    """Instructions for each message, in the cheapest of some rounds after the first."""
    found: dict[str, list[int]] = {"send": [], "receive": [], "alone": []}
    for number in range(ROUNDS + 1):
        producer = await client.create_producer(f"work-{number}", batching_enabled=True, max_pending_messages=0)
        with counted(found["send"]):
            for _ in range(MESSAGES):
                _ = producer.send_nowait(b"x" * 100)
            await producer.flush()
        with counted(found["receive"]):
            consumer = await client.subscribe(
                f"work-{number}", "s", receiver_queue_size=2 * MESSAGES, initial_position=aio.InitialPosition.Earliest
            )
            for _ in range(MESSAGES):
                await consumer.acknowledge(await consumer.receive(20_000))
        with counted(found["alone"]):
            for _ in range(LONE):
                await producer.send(b"x" * 100)
                await consumer.acknowledge(await consumer.receive())
    of = {"send": MESSAGES, "receive": MESSAGES, "alone": LONE}
    return {name: min(rounds[1:]) / of[name] for name, rounds in found.items()}


# 19 of a message that is sent are for the client's limit of memory: a look before it is added, and its bytes.
MOST: Final = {"send": 186, "receive": 252, "alone": 6950}


def test_a_message_costs_the_asyncio_client_what_it_did(tmp_path: Path) -> None:
    async def steps(broker: RealBroker) -> None:
        async with aio.Client(f"pulsar://127.0.0.1:{broker.node.port}") as client:
            found = await work(client)
        assert {name: round(spent) for name, spent in found.items() if spent > MOST[name] * TOLERANCE} == {}

    run_on_broker(tmp_path, steps)


def test_sending_costs_a_thread_what_it_did(server: Server) -> None:
    """The thread's own part of it: the loop takes over many at once. Before each argument was checked it was
    104; 37 are for the limit of memory: whether there is room, and how many bytes are handed over."""
    found: list[int] = []
    with magnetar.Client(server.broker_url) as client:
        producer = client.create_producer(
            "work-of-a-thread", batching_enabled=True, max_pending_messages=0, block_if_queue_full=True
        )
        for _ in range(ROUNDS):
            with counted(found):
                for _ in range(MESSAGES):
                    producer.send_async(b"x" * 100, None)
            producer.flush()
    assert min(found) / MESSAGES <= 155
