"""Where the sockets of a node listen: what the settings say, and nowhere else."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from magnetar.app.data_directory import DataDirectory
from magnetar.app.listening_sockets import binary_entrances, http_entrances
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError, PersistenceError
from magnetar.runtime.connections.acceptor import Entrance

Entrances = Callable[[Settings, Any], list[Entrance]]


@pytest.mark.parametrize(
    ("setting", "entrances"), [("brokerServicePort", binary_entrances), ("webServicePort", http_entrances)],
    ids=["brokerServicePort", "webServicePort"],
)  # fmt: skip
def test_a_port_is_the_one_that_was_asked_for(setting: str, entrances: Entrances) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (door,) = entrances(Settings(**{setting: port}), None)
    with closing(door.listening):
        assert door.port == port
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the loopback has one address")
@pytest.mark.parametrize("entrances", [binary_entrances, http_entrances])
def test_others_are_not_heard_at_another_address(entrances: Entrances) -> None:
    """bindAddress holds for both protocols."""
    (door,) = entrances(Settings(bindAddress="127.0.0.2", brokerServicePort=0, webServicePort=0), None)
    with closing(door.listening):
        socket.create_connection(("127.0.0.2", door.port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", door.port)).close()


@pytest.mark.parametrize(
    ("host", "words"), [("192.0.2.1", "is no address of this machine"), ("no.invalid", "cannot be resolved")]
)
def test_an_address_that_cannot_be_bound_names_the_setting(host: str, words: str) -> None:
    with pytest.raises(InvalidValueError, match=f"bindAddress: .*{words}.*; name "):
        binary_entrances(Settings(bindAddress=host, brokerServicePort=0), None)


def test_a_data_directory_that_cannot_be_made_says_what_to_name() -> None:
    with pytest.raises(PersistenceError, match=r"cannot be used as data directory: .*; name one on a disk"):
        DataDirectory(Path("/proc/none"))
