"""The threads of listeners end with what they listen to, also where its close fails or is that of the client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import magnetar
from magnetar.client.errors import ConnectionLostError
from magnetar.testing import PulsarBroker

PATIENCE = 60.0


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker(seed=1) as broker:
        yield broker


def listened(client: magnetar.Client, topic: str) -> tuple[magnetar.TableView, threading.Thread]:
    """A table view with a listener that has heard a change, and the listener's thread."""
    thread, heard = [threading.current_thread()], threading.Event()

    def listen(_key: str, _value: Any) -> None:
        thread[0] = threading.current_thread()
        heard.set()

    view = client.create_table_view(topic)
    view.listen(listen)
    with client.create_producer(topic) as producer:
        producer.send(b"1", partition_key="a")
    assert heard.wait(PATIENCE)
    return view, thread[0]


def test_a_view_whose_close_fails(broker: PulsarBroker) -> None:
    with broker.client() as client:
        view, thread = listened(client, "t")

        async def fail() -> None:
            raise ConnectionLostError("gone")

        view.twin.close = fail  # type: ignore[method-assign]
        with pytest.raises(ConnectionLostError):
            view.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.mark.parametrize("way", ["close", "shutdown"])
def test_a_view_whose_client_is_closed(broker: PulsarBroker, way: str) -> None:
    client = broker.client()
    _view, thread = listened(client, "t")
    getattr(client, way)()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize("reads", [False, True])
def test_a_listener_whose_consumer_cannot_be_closed_hears_nothing_more(broker: PulsarBroker, reads: bool) -> None:
    heard = list[bytes]()

    def listen(_handle: Any, message: magnetar.Message) -> None:
        heard.append(message.data())

    async def fail() -> None:
        raise ConnectionLostError("gone")

    with broker.client() as client:
        handle: Any = (
            client.create_reader("t", magnetar.MessageId.earliest, reader_listener=listen)
            if reads
            else client.subscribe("t", "s", message_listener=listen)
        )
        handle.twin.close = fail
        with pytest.raises(ConnectionLostError):
            handle.close()
        assert handle._listening.paused and handle._listening not in client._listeners.kept
