"""Every command of the protocol with boundary values in every field, in any order; seeded."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.testing.rawclient import make_entry
from tests.hostile.raw import TOPIC, Raw, field_of, frame, send_frame
from tests.hostile.victim import Target

_WHOLE = {
    FieldDescriptor.TYPE_INT32: (0, 1, -1, 2**31 - 1, -(2**31), 7),
    FieldDescriptor.TYPE_INT64: (0, 1, -1, 2**63 - 1, -(2**63), 2**31, 2**32),
    FieldDescriptor.TYPE_UINT32: (0, 1, 2**31 - 1, 2**31, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 1, 2, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1),
}
_TEXTS = (
    "", "x", "s", "x" * 3000, "persistent://public/default/", "persistent://public/default/fuzz",
    "persistent://public/default/fuzz-partition-0", "non-persistent://public/default/fuzz", "public/default",
    "a/b/c/d/e", "persistent://public/default/fuzz-partition-2147483647", "persistent://public/default/\u0000",
    "../../../etc/passwd", "persistent://public/default/..", "__compaction", "%", "%00", "\U0001f600" * 50, "(a+)+$",
    "persistent://public/default/__change_events", "[", "ключ",
    "persistent://pulsar/system/transaction_coordinator_assign-partition-0",
)  # fmt: skip
_IDS = ("request_id", "producer_id", "consumer_id", "watcher_id")


class Maker:
    """Commands with chosen values; ``rng`` decides."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def command(self) -> bytes:
        """One frame of any type; a quarter are commands that only brokers send."""
        base = pb.BaseCommand()
        kind = self.rng.choice(pb.BaseCommand.Type.keys())
        base.type = pb.BaseCommand.Type.Value(kind)
        part = getattr(base, field_of(kind))
        part.SetInParent()
        self._fill(part, part.DESCRIPTOR, 0)
        body = bytearray(base.SerializePartialToString())
        if self.rng.random() < 0.03:
            body[self.rng.randrange(len(body))] ^= 1 << self.rng.randrange(8)
        return frame(bytes(body))

    def _fill(self, message: Any, shape: Any, depth: int) -> None:
        for field in shape.fields:
            if field.is_required or self.rng.random() < 0.6:
                self._set(message, field, depth)

    def _set(self, message: Any, field: Any, depth: int) -> None:
        rng = self.rng
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            if depth > 3:
                return
            if field.is_repeated:
                for _ in range(rng.choice((0, 1, 2, 40))):
                    self._fill(getattr(message, field.name).add(), field.message_type, depth + 1)
            else:
                part = getattr(message, field.name)
                part.SetInParent()
                self._fill(part, field.message_type, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(self._value(field) for _ in range(rng.choice((0, 1, 3, 200))))
        else:
            setattr(message, field.name, self._value(field))

    def _value(self, field: Any) -> Any:
        rng = self.rng
        if field.name in _IDS and rng.random() < 0.8:
            return rng.randint(0, 6)
        if field.type in _WHOLE:
            return rng.choice(_WHOLE[field.type])
        if field.type == FieldDescriptor.TYPE_ENUM:
            return rng.choice(field.enum_type.values).number
        if field.type == FieldDescriptor.TYPE_STRING:
            return rng.choice(_TEXTS)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.choice((b"", b"\x00", b"\xff" * 100, b'{"type":"record","name":"r","fields":[]}'))
        if field.type == FieldDescriptor.TYPE_BOOL:
            return rng.random() < 0.5
        return rng.choice((0.0, -1.0, 1e308, float("inf"), float("nan")))


def commands(target: Target, scale: float) -> str:
    """Thousands of them over hundreds of connections that have producers and consumers open."""
    said = 0
    rounds = int(400 * scale)
    for seed in range(rounds):
        rng = random.Random(seed)
        maker = Maker(rng)
        with contextlib.suppress(ConnectionError, TimeoutError), Raw(target.broker_port, timeout=20.0) as raw:
            with contextlib.suppress(AssertionError):
                topic = f"{TOPIC}fuzz{rng.randint(0, 9)}"
                producer = raw.producer(topic)
                raw.publish(producer, 5)
                raw.consumer(topic, "s", rng.randint(0, 3), initialPosition=1)
            for _ in range(30):
                raw.say(maker.command())
                said += 1
                if rng.random() < 0.2:
                    raw.say(send_frame(producer, said, make_entry(b"m", producer="p", sequence_id=said)))
            raw.say(frame(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()).SerializeToString()))
            raw.until(pb.BaseCommand.PONG)
    return f"{said:,} commands over {rounds} connections"
