"""What a consumer counts of what went out to it, of which statistics show the messages of an entry on average."""

from __future__ import annotations

import pytest

from magnetar.model.subscription_types import SubType
from tests.support.subscription_stand import Stand


@pytest.mark.parametrize(
    ("sent", "average"),
    [
        ([], 0),
        ([(5, 5)], 1),
        ([(5, 5), (1, 1)], 1),
        ([(3, 30)], 10),
        ([(3, 30), (2, 2)], 9),
        ([(3, 30), (2, 2), (2, 2)], 8),
        ([(2, 2), (1, 100)], 11),
    ],
)
def test_the_average_moves_a_tenth_of_the_way(sent: list[tuple[int, int]], average: int) -> None:
    """Nine tenths of what it was and one of what went out, rounded; the first is taken whole."""
    consumer = Stand().join(sub_type=SubType.Shared, permits=0)[0]
    for number, (entries, messages) in enumerate(sent):
        consumer.sent(entries, messages, 10 * messages, 1000 + number)
    assert consumer.average_messages == average
    assert (consumer.entries_out, consumer.messages_out) == (sum(e for e, _ in sent), sum(m for _, m in sent))
    assert consumer.bytes_out == 10 * consumer.messages_out
    assert consumer.last_sent_ms == (999 + len(sent) if sent else 0)
