"""Descriptors: how many are left for connections beside those of storage."""

from __future__ import annotations

import pytest

from magnetar.model.errors import NotAllowedError
from magnetar.runtime.connections.acceptor import ConnectionLimit
from magnetar.runtime.connections.descriptors import Descriptors, count_open, limit_now


class Process:
    """What a process has open: ``own`` descriptors, and its connections."""

    def __init__(self, limit: int, own: int) -> None:
        self.own = own
        self.descriptors: Descriptors | None = None
        self.descriptors = Descriptors(limit, self.count)

    def count(self) -> int:
        return self.own + (self.descriptors.connections if self.descriptors is not None else 0)


def test_connections_get_what_is_left_beside_the_reserve() -> None:
    for limit in (64, 256, 1024, 65_536):
        descriptors = Descriptors(limit, lambda: 23)
        assert descriptors.room == limit - 23 - descriptors.reserve
        assert descriptors.reserve >= 16
        descriptors.require_room()


def test_too_few_descriptors_are_named() -> None:
    with pytest.raises(NotAllowedError, match=r"40 file descriptors .* 23 are open and 16 .* at least 47"):
        Descriptors(40, lambda: 23).require_room()


def test_what_storage_opens_meanwhile_is_taken_off() -> None:
    process = Process(256, 23)
    descriptors = process.descriptors
    assert descriptors is not None
    connection_limit = ConnectionLimit(0, 0, descriptors)
    room = descriptors.room
    for _ in range(room):
        assert connection_limit.admit("a") is None
    assert connection_limit.admit("a") is not None
    for _ in range(10):
        connection_limit.release("a")
    process.own += 6
    for _ in range(4):
        assert connection_limit.admit("a") is None
    assert (
        connection_limit.admit("a")
        == "Reached the maximum number of connections: the broker has 256 file descriptors (ulimit -n)"
    )
    assert connection_limit.refused == 2


def test_open_descriptors_of_this_process_are_counted() -> None:
    before = count_open()
    with open("/dev/null"):
        assert count_open() == before + 1
    assert limit_now() > before


def test_connections_are_counted_in_total_and_by_address() -> None:
    connection_limit = ConnectionLimit(3, 2, Descriptors(65_536, lambda: 23))
    assert [connection_limit.admit(one) for one in ("a", "a", "b")] == [None] * 3
    assert connection_limit.admit("c") == "Reached the maximum number of connections: 3"
    connection_limit.release("b")
    assert connection_limit.admit("a") == "Reached the maximum number of connections on address a: 2"
    connection_limit.release("a")
    assert connection_limit.admit("a") is None
    assert connection_limit.count == 2


def test_one_acceptor_leaves_room_for_the_other() -> None:
    descriptors = Process(256, 23).descriptors
    assert descriptors is not None
    clients, http = ConnectionLimit(0, 0, descriptors, spare=10), ConnectionLimit(0, 0, descriptors)
    while clients.admit("a") is None:
        pass
    assert [http.admit("b") for _ in range(10)] == [None] * 10
    assert http.admit("b") is not None
