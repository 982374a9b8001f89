"""Calls that wait are refused in a callback of the blocking client, and change nothing."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import magnetar
from magnetar.client.errors import BlockedLoopError
from magnetar.testing import PulsarBroker


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker(seed=1) as broker:
        yield broker


def test_a_refused_call_changes_nothing(broker: PulsarBroker) -> None:
    heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    changes: queue.SimpleQueue[object] = queue.SimpleQueue()
    with broker.client() as client:
        producer = client.create_producer("t")
        consumer = client.subscribe("t", "s")
        reader = client.create_reader("t", magnetar.MessageId.earliest)
        view = client.create_table_view("t")
        view.listen(lambda _, value: changes.put(value))
        listening = client.subscribe("t", "l", message_listener=lambda _, message: heard.put(message.data()))
        calls: dict[str, Callable[[], Any]] = {
            "client.close": client.close, "client.__exit__": lambda: client.__exit__(None, None, None),
            "producer.close": producer.close, "producer.flush": producer.flush,
            "producer.send": lambda: producer.send(b"not sent"),
            "consumer.close": consumer.close, "consumer.unsubscribe": consumer.unsubscribe,
            "consumer.receive": consumer.receive, "consumer.receive in time": lambda: consumer.receive(10),
            "consumer.batch_receive": consumer.batch_receive,
            "consumer.seek": lambda: consumer.seek(magnetar.MessageId.earliest),
            "consumer.redeliver": consumer.redeliver_unacknowledged_messages,
            "listener.pause": listening.pause_message_listener, "listener.close": listening.close,
            "reader.close": reader.close, "reader.read_next": reader.read_next,
            "reader.seek": lambda: reader.seek(magnetar.MessageId.latest), "view.close": view.close,
            "view.refresh": view.refresh,
            "new_transaction": client.new_transaction, "create_producer": lambda: client.create_producer("t"),
        }  # fmt: skip
        outcomes: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()

        def call_all(*_: object) -> None:
            found: dict[str, object] = {}
            for name, call in calls.items():
                try:
                    found[name] = call()
                except Exception as error:
                    found[name] = type(error)
            outcomes.put(found)

        producer.send_async(b"1", call_all, partition_key="k")
        assert outcomes.get(timeout=60) == dict.fromkeys(calls, BlockedLoopError)
        producer.send(b"2", partition_key="k")
        assert [consumer.receive(60_000).data() for _ in range(2)] == [b"1", b"2"]
        assert [reader.read_next(60_000).data() for _ in range(2)] == [b"1", b"2"]
        assert [heard.get(timeout=60) for _ in range(2)] == [b"1", b"2"]
        assert [changes.get(timeout=60) for _ in range(2)] == [b"1", b"2"]
        assert view["k"] == b"2"
        consumer.acknowledge_cumulative(reader.get_last_message_id())
