"""The official client beside every attack: it publishes and consumes steadily and keeps count.

One producer and one consumer for each subscription type, on topics of their own. A message that was receipted must
arrive once, in order (Key_Shared and Shared have one consumer here, so order holds there as well, but for
redeliveries, which nothing asks for).
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final

import pulsar  # type: ignore[import-untyped]  # the official client carries no types

RATE: Final = 50
"""Messages a second over all topics together."""

_KINDS: Final = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
    "keyshared": pulsar.ConsumerType.KeyShared,
}
_SETTLE_SECONDS: Final = 20.0


@dataclass
class Stream:
    """One topic with its producer and its consumer."""

    producer: Any
    consumer: Any
    sent: int = 0
    receipted: set[int] = field(default_factory=set)
    refused: int = 0
    received: list[int] = field(default_factory=list)


class Witness:
    """Watches from :meth:`start` to :meth:`stop`; then :meth:`faults` says what went wrong."""

    def __init__(self, url: str, name: str) -> None:
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._streams = [self._stream(f"witness-{name}-{kind}", kind) for kind in _KINDS]
        self._threads = [threading.Thread(target=self._publish, name="witness", daemon=True)]
        self._threads += [
            threading.Thread(target=self._consume, args=(stream,), name="witness", daemon=True)
            for stream in self._streams
        ]

    def _stream(self, topic: str, kind: str) -> Stream:
        producer = self._client.create_producer(topic, send_timeout_millis=60_000, batching_enabled=False)
        return Stream(producer, self._client.subscribe(topic, "witness", consumer_type=_KINDS[kind]))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _publish(self) -> None:
        number = 0
        at = time.monotonic()
        while not self._ending.is_set():
            stream = self._streams[number % len(self._streams)]
            sent, stream.sent = stream.sent, stream.sent + 1
            stream.producer.send_async(str(sent).encode(), self._answered(stream, sent), partition_key=str(sent % 7))
            number += 1
            at += 1 / RATE
            self._ending.wait(max(0.0, at - time.monotonic()))

    def _answered(self, stream: Stream, number: int) -> Any:
        def told(result: Any, message_id: Any) -> None:
            with self._lock:
                if result == pulsar.Result.Ok:
                    stream.receipted.add(number)
                else:
                    stream.refused += 1

        return told

    def _consume(self, stream: Stream) -> None:
        while not (self._ending.is_set() and self._complete(stream)):
            try:
                message = stream.consumer.receive(200)
            except pulsar.Timeout:
                if self._ending.is_set() and time.monotonic() > self._deadline:
                    return
                continue
            except pulsar.PulsarException:
                return
            stream.received.append(int(message.data()))
            stream.consumer.acknowledge(message)

    def _complete(self, stream: Stream) -> bool:
        with self._lock:
            answered = len(stream.receipted) + stream.refused
        return answered == stream.sent and len(stream.received) >= len(stream.receipted)

    def stop(self) -> None:
        """Publish no more, and wait until everything has arrived."""
        self._deadline = time.monotonic() + _SETTLE_SECONDS
        self._ending.set()
        for thread in self._threads:
            thread.join(_SETTLE_SECONDS + 5)
        self._client.close()

    @property
    def messages(self) -> int:
        """How many were receipted."""
        return sum(len(stream.receipted) for stream in self._streams)

    def faults(self) -> list[str]:
        """What was lost, repeated, out of order or refused."""
        found = []
        for kind, stream in zip(_KINDS, self._streams, strict=True):
            lost = stream.receipted.difference(stream.received)
            if lost:
                found.append(f"{kind}: {len(lost)} receipted messages did not arrive, the first is {min(lost)}")
            if len(set(stream.received)) < len(stream.received):
                found.append(f"{kind}: {len(stream.received) - len(set(stream.received))} messages came again")
            if sorted(stream.received) != stream.received:
                found.append(f"{kind}: messages came out of order")
            if stream.refused:
                found.append(f"{kind}: {stream.refused} messages were refused")
        return found
