"""Hashes against the vectors of rules of group 15."""

from __future__ import annotations

import pytest

from magnetar.model.hashing import boost_hash, java_string_hash, murmur3_31, range_slot, ring_points, ring_slot


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"hello", 0x248BFA47),
        (b"test", 0x3A6BD213),
        (b"", 0),
        (b"Order-3459134", 964695987),
        (b"key1", 462881061),
        (b"abc", 870159354),
        (b"127", 731532567),
        (b"key-0", 1664612543),
        (b"orders-aggregator-pod-2345-consumer1", 1003084738),
        (b"orders-aggregator-pod-2345-consumer2", 373317202),
        (b"orders-aggregator-pod-2345-consumer100", 320276078),
    ],
)
def test_murmur_hash_is_that_of_the_official_clients(key: bytes, value: int) -> None:
    """The 31-bit murmur hash has the values of the official clients (rules 6.7.5, 15.1, 15.5)."""
    assert murmur3_31(key) == value


@pytest.mark.parametrize(
    ("key", "in_range", "on_ring"),
    [
        (b"Order-3459134", 6067, 20788),
        (b"key1", 293, 7357),
        (b"abc", 37882, 51160),
        (b"127", 19735, 30898),
        (b"key-0", 63679, 23544),
    ],
)
def test_slots_of_a_key_in_the_range_and_on_the_ring(key: bytes, in_range: int, on_ring: int) -> None:
    assert range_slot(key) == in_range
    assert ring_slot(key) == on_ring


def test_slot_zero_is_never_used() -> None:
    """The empty key hashes to 0: bumped to 1 in range mode, 0 + 1 on the ring (rule 0.4)."""
    assert range_slot(b"") == 1
    assert ring_slot(b"") == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("hello", 0x5E918D2),
        ("test", 0x364492),
        ("Order-3459134", 1082638286),
        ("key1", 3288498),
        ("abc", 96354),
        ("127", 48694),
        ("key-0", 101943362),
        ("é", 233),
        ("", 0),
        # two UTF-16 units: 31 * 0xD83D + 0xDE00
        ("\U0001f600", 1772899),
    ],
)
def test_java_string_hash(text: str, value: int) -> None:
    """The hash of a string is that of Java, over UTF-16 units (rules 6.7.4, 15.1, 15.6)."""
    assert java_string_hash(text) == value


def test_ring_points() -> None:
    """The points of a consumer are those of the vector (rule 15.4)."""
    points = ring_points("orders-aggregator-pod-2345-consumer", 0, 100)
    assert len(points) == 100
    assert (points[0], points[1], points[2], points[99]) == (42111, 2183, 50957, 29037)


def test_ring_points_of_a_second_consumer_of_the_same_name_differ() -> None:
    assert set(ring_points("c", 0, 100)) != set(ring_points("c", 1, 100))


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("a", 53), ("ab", 239), ("abc", 156), ("abcd", 70), ("abcde", 220), ("abcdef", 121), ("abcdefg", 57),
        ("abcdefgh", 199), ("abcdefghi", 152), ("customer-7", 44), ("ä", 22), ("日本語", 34), ("k" * 16, 133),
        ("k" * 17, 248), ("k" * 31, 61), ("k" * 100, 155), ("key-0", 126), ("key-1", 116), ("key-2", 99), ("key-3", 9),
    ],
)  # fmt: skip
def test_boost_hash_chooses_the_partitions_of_the_official_python_client(key: str, partition: int) -> None:
    """Where pulsar-client 3.13.0 sent these keys on a topic of 251 partitions (rule 6.7.6)."""
    assert boost_hash(key) % 251 == partition
