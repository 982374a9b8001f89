"""Digests differ exactly in the buckets whose messages differ, however messages are ordered and divided."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.read_position import ReadPosition
from magnetar.jobs.reader.unit_reader import Access, Unit
from magnetar.jobs.verification.comparison import BucketDigest, DigestBucket, Side, differing, matching_for
from magnetar.model.errors import InvalidValueError

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
MESSAGES = st.lists(
    st.tuples(st.sampled_from([DigestBucket("0 p", 0), DigestBucket("0 p", 1), DigestBucket("1 p", 0)]), NUMBERS),
    max_size=12,
)


def digests(messages: list[tuple[DigestBucket, int]]) -> dict[DigestBucket, BucketDigest]:
    out: dict[DigestBucket, BucketDigest] = {}
    for key, number in messages:
        one = BucketDigest(1, number, number)
        out[key] = out[key].plus(one) if key in out else one
    return out


@given(MESSAGES, MESSAGES, st.randoms(use_true_random=False))
def test_digests_differ_exactly_in_buckets_whose_messages_differ(
    common: list[tuple[DigestBucket, int]], more: list[tuple[DigestBucket, int]], random: object
) -> None:
    left, right = list(common), [*common, *more]
    random.shuffle(right)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    changed = sorted({key for key, _ in more})
    assert differing(digests(left), digests(right)) == changed
    assert differing(digests(right), digests(left)) == changed
    assert Counter(left) <= Counter(right)


def test_topics_that_cannot_be_matched_by_producer() -> None:
    def side(name: str, partitions: int) -> Side:
        topics = [f"persistent://public/default/{name}-partition-{number}" for number in range(partitions)]
        return Side(name, Access(), [Unit(topic, ReadPosition(1, 0), ReadPosition(1, 1), 0) for topic in topics])

    with pytest.raises(InvalidValueError, match=r"a has 2 partitions with messages and b 3.*use --by content"):
        matching_for(side("a", 2), side("b", 3), "producer")
    assert matching_for(side("a", 2), side("b", 3), "content").way == "content"
    with pytest.raises(InvalidValueError, match="by producer or by content, not by 'index'"):
        matching_for(side("a", 2), side("b", 2), "index")
