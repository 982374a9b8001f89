"""Numbers, rates and latencies of a producer or consumer, with the names of Java's ``ProducerStats`` and
``ConsumerStats``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from magnetar.client.machines.entry_intake import ConsumeCounters
from magnetar.client.machines.outgoing.entry_fate import PublishCounters

_STEPS: Final = 10
"""Steps of a millisecond in which latencies are counted."""


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """What a producer has sent since it was opened, all partitions together."""

    seconds: float
    """How long that is."""
    num_msgs_sent: int
    """Messages with a receipt."""
    num_bytes_sent: int
    num_send_failed: int
    pending_queue_size: int
    """Messages without a receipt."""
    send_latency_millis_50pct: float
    """From handing in to the receipt; all are 0 while no message has one."""
    send_latency_millis_75pct: float
    send_latency_millis_95pct: float
    send_latency_millis_99pct: float
    send_latency_millis_999pct: float
    send_latency_millis_max: float

    @property
    def send_msgs_rate(self) -> float:
        """Messages a second."""
        return self.num_msgs_sent / self.seconds if self.seconds > 0 else 0.0

    @property
    def send_bytes_rate(self) -> float:
        """Bytes a second."""
        return self.num_bytes_sent / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ConsumptionStatistics:
    """What a consumer has received since it was opened, all topics and partitions together."""

    seconds: float
    """How long that is."""
    num_msgs_received: int
    """From the broker, with what came again."""
    num_bytes_received: int
    num_receive_failed: int
    """Messages that are damaged."""
    num_acks_sent: int
    """Ids in acknowledgements: entries, and messages of batches by their index."""
    msg_num_in_receiver_queue: int

    @property
    def rate_msgs_received(self) -> float:
        """Messages a second."""
        return self.num_msgs_received / self.seconds if self.seconds > 0 else 0.0

    @property
    def rate_bytes_received(self) -> float:
        """Bytes a second."""
        return self.num_bytes_received / self.seconds if self.seconds > 0 else 0.0


def producer_stats(counters: Iterable[PublishCounters], pending: int, seconds: float) -> ProducerStatistics:
    """Return the sums of all partitions, and percentiles of their latencies."""
    found = list(counters)
    latencies: dict[int, int] = {}
    for one in found:
        for step, count in one.latencies.items():
            latencies[step] = latencies.get(step, 0) + count
    steps = sorted(latencies)
    total = sum(latencies.values())

    def percentile(share: float) -> float:
        seen = 0
        for step in steps:
            seen += latencies[step]
            if seen >= share * total:
                return step / _STEPS
        return 0.0

    return ProducerStatistics(
        seconds,
        sum(one.messages_sent for one in found),
        sum(one.bytes_sent for one in found),
        sum(one.failed for one in found),
        pending,
        percentile(0.5), percentile(0.75), percentile(0.95), percentile(0.99), percentile(0.999), percentile(1.0),
    )  # fmt: skip


def consumer_stats(counters: Iterable[ConsumeCounters], waiting: int, seconds: float) -> ConsumptionStatistics:
    """Return the sums of all topics and partitions."""
    found = list(counters)
    return ConsumptionStatistics(
        seconds,
        sum(one.messages_received for one in found),
        sum(one.bytes_received for one in found),
        sum(one.rejected for one in found),
        sum(one.acks_sent for one in found),
        waiting,
    )
