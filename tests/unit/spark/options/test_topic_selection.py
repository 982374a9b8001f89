"""Topics as options name them become topic-partitions, each of them once."""

from __future__ import annotations

from typing import cast

import pytest

from magnetar.client.lookup import Lookup
from magnetar.spark.options.source_options import source_options
from magnetar.spark.options.topic_selection import topic_partitions

_PLAIN = ["persistent://public/default/s1"]
_PARTS = [f"persistent://public/default/pt-partition-{number}" for number in range(2)]


class _KnownTopics:
    """Stands for a broker with s1, which has no partitions, and pt, which has two."""

    def partition_count(self, name: str, *, create: bool) -> int:
        return 2 if name.endswith("/pt") else 0


@pytest.mark.parametrize(
    ("options", "there"),
    [
        ({"topics": "s1,s1"}, _PLAIN),
        ({"topics": "s1,persistent://public/default/s1"}, _PLAIN),
        ({"assign": '{"s1":[0],"public/default/s1":[0]}'}, _PLAIN),
        ({"topics": "pt,pt-partition-0"}, _PARTS),
        ({"topics": "pt-partition-1,pt"}, _PARTS[::-1]),
        ({"assign": '{"pt":[0,0],"public/default/pt":[1,0]}'}, _PARTS),
    ],
)
def test_what_options_name_twice_is_read_once(options: dict[str, str], there: list[str]) -> None:
    topics = source_options({"service.url": "pulsar://localhost:6650", **options}).topics
    assert topic_partitions(cast(Lookup, _KnownTopics()), topics, create=False) == there
