"""Names and properties that a client gives are kept as long as it stays, so their sizes are bounded."""

from __future__ import annotations

import pytest

from magnetar.broker.connection.bounds.metadata_bounds import check_producer, check_subscribe
from magnetar.model.errors import MetadataError, NotAllowedError
from magnetar.protocol import commands as c

NAME_MAX, PROPERTIES_MAX = 4096, 64 << 10
"""Bytes; a client that has worked must not be refused by a later version."""
LONG = "n" * (NAME_MAX + 1)
T = "persistent://public/default/t"


@pytest.mark.parametrize(
    "command",
    [
        c.CommandSubscribe(T, LONG, c.SubType.Shared, 1, 1),
        c.CommandSubscribe(T, "s", c.SubType.Shared, 1, 1, consumer_name=LONG),
        c.CommandSubscribe(T, "s", c.SubType.Shared, 1, 1, subscription_properties=(("k", "v" * PROPERTIES_MAX),)),
    ],
)
def test_too_much_of_a_consumer(command: c.CommandSubscribe) -> None:
    with pytest.raises(NotAllowedError, match="at most"):  # clients repeat what is a MetadataError
        check_subscribe(command, 1024)


def test_too_much_metadata_of_a_consumer_is_refused_as_apache_pulsar_refuses_it() -> None:
    with pytest.raises(MetadataError, match="max size of 1 Kb"):
        check_subscribe(c.CommandSubscribe(T, "s", c.SubType.Shared, 1, 1, metadata=(("k", "v" * 1024),)), 1024)


@pytest.mark.parametrize(
    "command",
    [
        c.CommandProducer(T, 1, 1, LONG),
        c.CommandProducer(T, 1, 1, initial_subscription_name=LONG),
        c.CommandProducer(T, 1, 1, metadata=tuple(("k" * 100, "v" * 100) for _ in range(PROPERTIES_MAX // 200 + 1))),
    ],
)
def test_too_much_of_a_producer(command: c.CommandProducer) -> None:
    with pytest.raises(NotAllowedError, match="at most"):
        check_producer(command)


def test_what_is_usual_passes() -> None:
    most = "n" * NAME_MAX
    check_subscribe(
        c.CommandSubscribe(T, most, c.SubType.Shared, 1, 1, consumer_name=most, metadata=(("k", "v" * 1023),)), 1024
    )
    check_subscribe(c.CommandSubscribe(T, "s", c.SubType.Shared, 1, 1, metadata=(("k", "v" * 5000),)), 0)
    check_producer(c.CommandProducer(T, 1, 1, most, metadata=(("k", "v" * (PROPERTIES_MAX - 1)),)))
