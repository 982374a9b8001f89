"""One thing done to one file of a directory, by seed; and what a broker may make of it.

Directories are made once, by a whole broker in virtual time: topics with policies, messages, acknowledgements with
holes, ended in order or killed, and a foreign one. A case copies one of them, does its damage, asks ``verify``, starts
a broker on it, lets every pass of upkeep run, and looks at everything that can be read. Allowed is:

* *harmless*: everything is as it was;
* *healed*: everything is as it was, and a line of the log says what was wrong;
* *named*: something is missing, and the start, or a line of the log, says so;
* *refused*: the start says which file is to be put right, and putting it back heals it;
* *tail*: the last write before a kill, which cannot be distinguished from one that was cut off.

Never allowed: a message, an acknowledgement or a policy that is not what was written; a policy in doubt that deletes; a
start that names damage which ``verify`` does not find.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field, replace
from typing import Any, Final

from magnetar.config.settings import Settings
from magnetar.model.errors import MetadataError, PersistenceError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject
from magnetar.protocol.commands import SubType
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.verify import verify
from magnetar.testing.broker import BrokerMachine
from magnetar.testing.faultfiles import FaultFileSystem
from tests.sim.clients import Habit, Publisher, Subscriber
from tests.sim.world import SMALL, T, World, run_seed
from tests.support.simulated_store import readable

TOPICS: Final = (T, "persistent://public/default/u")
KINDS: Final = ("flip", "flip", "flip", "flip", "cut", "zero", "swap", "foreign", "foreign", "gone", "twice")
STORAGE: Final = replace(SMALL, segment_bytes=6_000)
SETTINGS: Final = Settings(livenessCheckSeconds=0)

Image = dict[str, bytes]


@dataclass
class Sight:
    """All that can be seen of a broker's state."""

    entries: dict[str, dict[int, bytes]] = field(default_factory=dict)
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    unacked: dict[str, frozenset[int]] = field(default_factory=dict)
    policies: dict[str, Any] = field(default_factory=dict)


@dataclass
class Directory:
    """A directory as it was left, and what it held."""

    image: Image
    sight: Sight
    killed: bool


async def sight(world: World) -> Sight:
    """Read everything."""
    found = Sight()
    broker = world.machine.broker
    for topic in TOPICS:
        log = broker.store.find_log(topic)
        if log is not None:
            found.entries[topic] = await readable(log)
            found.ends[topic] = (log.first, log.end)
            for name, cursor in log.cursors.items():
                unacked = (o for o in range(log.first, log.end) if not cursor.acknowledged(o))
                found.unacked[f"{topic} {name}"] = frozenset(unacked)
        found.policies[topic] = broker.resources.topic_policies.get(TopicName.parse(topic))
    facts: Any = broker._metadata
    found.policies["facts"] = {path: record for path, record in facts.records() if not path.startswith("/counters")}
    return found


def image_of(files: FaultFileSystem) -> Image:
    """The bytes of all files."""
    return {name: bytes(inode.view) for name, inode in files._disk.directory.live.items()}


def restored(image: Image, seed: int) -> FaultFileSystem:
    """A disk that holds these files, durably."""
    files = FaultFileSystem(random.Random(seed))
    for name, data in image.items():
        file = files.open(name, create=True)
        file.append([data])
        file.sync()
        file.close()
    files.sync()
    return files


def made(seed: int, *, killed: bool) -> Directory:
    """A directory with a history."""
    made: list[Directory] = []

    async def simulation(world: World) -> None:
        await world.boot()
        resources = world.machine.broker.resources
        for i, topic in enumerate(TOPICS):
            name = TopicName.parse(topic)
            keep: JsonObject = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
            await resources.topic_policies.update(name, "retention", keep)
            await resources.topic_policies.update(name, "messageTTLInSeconds", 100_000 + i)
        for i in range(seed % 5):
            await resources.namespaces.create("public", f"n{i}")
        readers = [Subscriber(world, t[-1], t, "s", SubType.Shared, Habit(confirmed=1.0, keeps=0.3)) for t in TOPICS]
        for reader in readers:
            world.start(reader.run())
        await world.finish(*(Publisher(world, t[-1], t, size=world.rng.choice((20, 200))).run(60) for t in TOPICS))
        await asyncio.sleep(1)
        for reader in readers:
            reader.stopped = True
        if killed:
            await world.machine.stop()
            await world.machine.start()
            await world.finish(*(Publisher(world, t[-1] * 2, t, size=50).run(30) for t in TOPICS))
        await asyncio.sleep(1)
        world.machine.broker.service.close()
        seen = await sight(world)
        if killed:
            world.machine.kill()
        else:
            await world.machine.stop()
        made.append(Directory(image_of(world.machine.files), seen, killed))

    run_seed(simulation, seed, settings=SETTINGS, storage=STORAGE)
    return made[0]


@dataclass
class Case:
    """What was done."""

    kind: str
    name: str
    at: int
    image: Image


def damaged(directory: Directory, foreign: Directory, seed: int) -> Case:
    """One damage. Every kind of file gets its turn."""
    rng = random.Random(seed)
    image = dict(directory.image)
    sorts = _sorts(image)
    sort = sorted(sorts)[seed % len(sorts)]
    name = rng.choice(sorts[sort])
    kind = rng.choice(KINDS)
    data = bytearray(image[name])
    at = rng.randrange(len(data)) if data else 0
    if kind == "flip" and data:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[at:]
    elif kind == "zero":
        data[at : at + 512] = bytes(len(data[at : at + 512]))
    elif kind == "foreign":
        data = bytearray(foreign.image[rng.choice(_sorts(foreign.image)[sort])])
    image[name] = bytes(data)
    if kind == "swap":
        other = rng.choice(sorts[sort])
        image[name], image[other] = image[other], image[name]
    elif kind == "gone":
        del image[name]
    elif kind == "twice" and sort == "metadata":
        for one in sorts[sort]:
            data = bytearray(image[one])
            data[min(at, len(data) - 1)] ^= 1 << rng.randrange(8)
            image[one] = bytes(data)
    return Case(kind, name, at, image)


def _sorts(image: Image) -> dict[str, list[str]]:
    sorts: dict[str, list[str]] = {}
    for name in sorted(image):
        sort = "index" if name.endswith(".index") else name.partition("-")[0]
        sorts.setdefault(sort, []).append(name)
    return sorts


def judged(directory: Directory, case: Case, seed: int) -> str:
    """Start on it and say what came of it. Raises AssertionError for what is not allowed."""
    told = _Told()
    report = verify(restored(case.image, seed))
    logging.getLogger("magnetar").addHandler(told)
    verdicts: list[str] = []

    async def simulation(world: World) -> None:
        verdicts.append(await _look(world, directory, case, told, seed))

    try:
        run_seed(simulation, seed, settings=SETTINGS, storage=STORAGE)
    finally:
        logging.getLogger("magnetar").removeHandler(told)
    if told.errors and verdicts[0] != "refused":
        assert report.damage, f"the start names damage that verify does not find: {told.errors}"
    return verdicts[0]


class _Told(logging.Handler):
    """What was said."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        missing_index = ".index is unreadable ([Errno 2]" in record.getMessage()
        if record.levelno >= logging.ERROR and not missing_index:
            self.errors.append(record.getMessage())


async def _look(world: World, directory: Directory, case: Case, told: _Told, seed: int) -> str:
    before = directory.sight
    world.machine = BrokerMachine(world.loop, world.network, settings=world.settings, storage=world.storage)
    world.machine.files = restored(case.image, seed)
    try:
        await world.machine.start()
    except (PersistenceError, MetadataError) as refused:
        assert any(word in str(refused) for word in ("segment", "checkpoint", "metadata")), refused
        world.machine.files = restored(directory.image, seed)
        await world.machine.start()
        assert await sight(world) == before, "putting the file back does not heal it"
        return "refused"
    broker = world.machine.broker
    named = bool(broker.store.damage or told.lines)
    doubt = broker.store.keep_all
    assert (await sight(world)).policies == before.policies or doubt is not None, "a policy changed"
    for topic in TOPICS:  # loaded topics are what upkeep looks at
        if topic in broker.store:
            broker.service.topic_for(TopicName.parse(topic), create=False)
    for one in (broker.upkeep.trim, broker.upkeep.retain, broker.upkeep.expire, broker.upkeep.check_quotas):
        await one()
    await asyncio.sleep(30)
    after = await sight(world)
    named = named or bool(told.lines)
    if after == before:
        return "healed" if named else "harmless"
    lost = 0
    for topic, entries in before.entries.items():
        now = after.entries.get(topic, {})
        wrong = {o: v for o, v in now.items() if o in entries and entries[o] != v}
        assert not wrong, f"something wrong is read: {wrong}"
        assert not [o for o in now if o not in entries], "something that nobody wrote"
        first = after.ends.get(topic, (0, 0))[0]
        assert first <= before.ends[topic][0] or not now, f"kept messages of {topic} were let go: {first}"
        lost += len(entries) - len(now)
    for name, there in after.unacked.items():
        end = after.ends[name.partition(" ")[0]][1]
        fewer = {o for o in before.unacked.get(name, frozenset()) - there if o < end}
        assert not fewer, f"acknowledged by nobody: {sorted(fewer)[:5]} of {name}"
    tail = directory.killed and case.name == _newest(directory.image)
    if named:
        return "named"
    assert tail and case.kind in ("cut", "zero"), (
        f"{lost} entries are missing or acknowledgements gone, and nobody says so"
    )
    return "tail"


def _newest(image: Image) -> str:
    return f"segment-{max(segment_numbers(image)):016x}"
