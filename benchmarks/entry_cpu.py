"""CPU of an entry in the broker alone: sockets are memory, nothing is synced, the rest of the machine is left out.

``python -m benchmarks.entry_cpu`` prints microseconds of the process for each entry, the first decile of its steps;
``--json`` prints the same for :mod:`benchmarks.compiled_modules`, which compares builds. A step hands the broker all
messages at once, waits for receipts and messages, and acknowledges each message by a command of its own. Which build
runs is decided by PYTHONPATH, and said at the top.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.memory_peer import MemoryPeer
from tests.support.real_broker import RealBroker, run_on_broker

from magnetar.compiled_build import running_build
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import make_entry

STEPS = 40


@dataclass(frozen=True)
class Work:
    """Entries of a step, and who takes them; nobody without ``sub_type``."""

    name: str
    entries: int = 1_000
    size: int = 100
    topics: int = 1
    consumers: int = 1
    sub_type: c.SubType | None = None

    def frames(self, first: int) -> bytes:
        """Return the step's SEND commands."""
        keyed = self.sub_type == c.SubType.Key_Shared
        return b"".join(
            codec.encode(
                c.CommandSend(
                    number % self.topics, number, 1, None, False, None, False, None,
                    make_entry(
                        b"x" * self.size, producer="p", sequence_id=number,
                        key=f"{number * 7919 % 1000:04}" if keyed else "",
                    ),
                )
            )
            for number in range(first, first + self.entries)
        )  # fmt: skip


WORK = (
    Work("produce, 100 B"),
    Work("produce and consume, Exclusive", sub_type=c.SubType.Exclusive),
    Work("the same, Shared", sub_type=c.SubType.Shared),
    Work("the same, Key_Shared, two consumers", consumers=2, sub_type=c.SubType.Key_Shared),
    Work("the same, 1,000 topics in turn", topics=1_000, sub_type=c.SubType.Exclusive),
    Work("produce, 100 KB", entries=64, size=100_000),
)


async def silence(peers: Sequence[MemoryPeer], least: int) -> None:
    """Wait until so many bytes came and none have come for a while; looking costs next to nothing."""
    before, calm = 0, 0
    async with asyncio.timeout(20):
        while calm < 5:
            await asyncio.sleep(0.005)
            heard = sum(peer.unheard for peer in peers)
            calm = calm + 1 if heard == before >= least else 0
            before = heard


async def steps(broker: RealBroker, work: Work, count: int) -> float:
    """Microseconds of CPU for each entry."""
    sender = MemoryPeer(broker)
    sub_type = work.sub_type
    takers = [] if sub_type is None else [MemoryPeer(broker) for _ in range(work.consumers)]
    for number in range(work.topics):
        name = f"persistent://public/default/{work.name.replace(' ', '-').replace(',', '')}-{number}"
        sender.say(c.CommandProducer(topic=name, producer_id=number, request_id=number + 1))
        await sender.answered(c.CommandProducerSuccess)
        for taker in takers:
            assert sub_type is not None
            taker.say(
                c.CommandSubscribe(
                    topic=name, subscription="s", sub_type=sub_type, consumer_id=number, request_id=number + 1
                )
            )
            await taker.answered(c.CommandSuccess)
            taker.say(c.CommandFlow(consumer_id=number, permits=1_000_000))
    receipts = 0
    found = []
    for step in range(count):
        data = work.frames(step * work.entries)
        least = (work.size + 40) * work.entries if takers else 0
        gc.collect()
        began = time.process_time()
        sender.listener.data_received(data)
        await silence((sender, *takers), 10 * work.entries + least)
        spent = time.process_time() - began
        receipts += sum(isinstance(one, c.CommandSendReceipt) for one in sender.hear())
        taken = [[one for one in taker.hear() if isinstance(one, c.CommandMessage)] for taker in takers]
        acks = [
            b"".join(
                codec.encode(c.CommandAck(one.consumer_id, c.AckType.Individual, (one.message_id,))) for one in each
            )
            for each in taken
        ]
        began = time.process_time()
        for taker, ack in zip(takers, acks, strict=True):
            taker.listener.data_received(ack)
        await asyncio.sleep(0.03 if takers else 0)
        found.append(spent + time.process_time() - began)
        assert not takers or sum(map(len, taken)) == work.entries, [len(each) for each in taken]
    async with asyncio.timeout(20):
        while receipts < work.entries * count:
            await asyncio.sleep(0.05)
            receipts += sum(isinstance(one, c.CommandSendReceipt) for one in sender.hear())
    return sorted(found)[count // 10] / work.entries * 1e6


def measure(wanted: str, count: int) -> dict[str, float]:
    """Microseconds by the workload's name."""
    found: dict[str, float] = {}
    for work in WORK:
        if wanted in work.name:

            async def scenario(broker: RealBroker, work: Work = work) -> None:
                found[work.name] = await steps(broker, work, count)

            with tempfile.TemporaryDirectory() as data:
                run_on_broker(Path(data), scenario, journalSyncData=False)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a workload's name")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    found = measure(chosen.only, chosen.steps)
    if chosen.json:
        print(json.dumps({"build": running_build().kind, "microseconds": found}))
        return
    print(running_build())
    for name, value in found.items():
        print(f"{name:40} {value:7.2f} us")


if __name__ == "__main__":
    main()
