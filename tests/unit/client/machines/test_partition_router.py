"""Which partition a message goes to."""

from __future__ import annotations

import pytest

from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.outgoing.partition_router import HashingScheme, PartitionRouter, PartitionsRoutingMode
from magnetar.model.errors import InvalidValueError
from magnetar.model.hashing import java_string_hash, murmur3_31

PLAIN = OutgoingMessage(b"xx")
ROUND = PartitionsRoutingMode.RoundRobinDistribution


def chosen(router: PartitionRouter, count: int, now: float = 0.0) -> list[int]:
    return [router.choose(PLAIN, 4, now) for _ in range(count)]


def test_in_turn() -> None:
    """Strictly without batching, otherwise on the border of a batch (rule 6.7.1)."""
    assert chosen(PartitionRouter(ROUND, HashingScheme.JavaStringHash, 0.5), 5) == [2, 3, 0, 1, 2]
    batched = PartitionRouter(ROUND, HashingScheme.JavaStringHash, 0.0, (3, 0, 1.0))
    assert chosen(batched, 7) == [0, 0, 0, 1, 1, 1, 2]
    assert chosen(batched, 2, 1.0) == [3, 3]
    small = PartitionRouter(ROUND, HashingScheme.JavaStringHash, 0.0, (99, 4, 1.0))
    assert chosen(small, 5) == [0, 0, 1, 1, 2]


def test_by_key_and_to_one() -> None:
    """Rules 6.7.2 to 6.7.5; the ordering key does not count."""
    keyed = OutgoingMessage(b"", key="order-7", ordering_key=b"z")
    for scheme, number in (
        (HashingScheme.JavaStringHash, java_string_hash("order-7")),
        (HashingScheme.Murmur3_32Hash, murmur3_31(b"order-7")),
    ):
        assert PartitionRouter(ROUND, scheme, 0.0).choose(keyed, 7, 0.0) == number % 7
    single = PartitionRouter(PartitionsRoutingMode.UseSinglePartition, HashingScheme.JavaStringHash, 0.8)
    assert chosen(single, 3) == [3, 3, 3]


def test_by_a_function() -> None:
    custom = PartitionsRoutingMode.CustomPartition
    router = PartitionRouter(custom, HashingScheme.JavaStringHash, 0.0, router=lambda message, count: count - 1)
    assert chosen(router, 2) == [3, 3]
    wrong = PartitionRouter(custom, HashingScheme.JavaStringHash, 0.0, router=lambda message, count: count)
    with pytest.raises(InvalidValueError, match="chose partition 4 of 4"):
        chosen(wrong, 1)
    for found, kind in ((None, "NoneType"), ("0", "str"), (1.0, "float")):
        other = PartitionRouter(custom, HashingScheme.JavaStringHash, 0.0, router=lambda *_, it=found: it)
        with pytest.raises(
            InvalidValueError, match=f"message_router returned {kind}, not the number of a partition, 0 to"
        ):
            chosen(other, 1)
    with pytest.raises(InvalidValueError, match="belong together"):
        PartitionRouter(custom, HashingScheme.JavaStringHash, 0.0)
