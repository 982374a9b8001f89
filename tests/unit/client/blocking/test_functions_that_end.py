"""Functions of the application that raise SystemExit or KeyboardInterrupt in a blocking client: it goes on."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import pytest

import magnetar
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.errors import CryptoError
from magnetar.testing import PulsarBroker
from tests.support.encrypted_entries import pair

ENDS = [SystemExit, KeyboardInterrupt]


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker(seed=1) as broker:
        yield broker


@pytest.mark.parametrize("error", ENDS)
def test_a_client_goes_on_when_a_function_raises(broker: PulsarBroker, error: type[BaseException]) -> None:
    """A callback, an interceptor, a router and a key reader, each of which its client calls on its own thread."""

    def raises(*_: object) -> Any:
        raise error

    fail: Any = raises

    class Interceptor(magnetar.ProducerInterceptor):
        before_send = fail
        on_send_acknowledgement = fail

    class Keys(magnetar.CryptoKeyReader):
        get_public_key = fail
        get_private_key = fail

    keys = Keys(None, None)
    with broker.client() as client:
        plain = client.create_producer("t", interceptors=[Interceptor()])
        heard: queue.SimpleQueue[object] = queue.SimpleQueue()
        plain.send_async(b"1", fail)
        plain.send_async(b"2", lambda *fate: heard.put(fate[0]))
        assert heard.get(timeout=60) == magnetar.Result.Ok
        plain.send(b"3")
        broker.admin.topics.create_partitioned("parted", 2)
        custom = magnetar.PartitionsRoutingMode.CustomPartition
        routed = client.create_producer("parted", message_router=fail, message_routing_mode=custom)
        with pytest.raises(magnetar.exceptions.PulsarException, match=error.__name__):
            routed.send(b"4")
        plain.send(b"5")
        with pytest.raises(CryptoError, match=error.__name__):
            client.create_producer("t", encryption_key="k", crypto_key_reader=keys)
        consumer = client.subscribe("sealed", "s", crypto_key_reader=keys)
        good = _Reader()
        client.create_producer("sealed", encryption_key="k", crypto_key_reader=good).send(b"6")
        client.create_producer("sealed").send(b"7")
        assert consumer.receive(60_000).data() == b"7"


class _Reader:
    def get_public_key(self, key_name: str, metadata: object) -> magnetar.EncryptionKeyInfo:
        return magnetar.EncryptionKeyInfo(pair()[1].encode())

    def get_private_key(self, key_name: str, metadata: object) -> magnetar.EncryptionKeyInfo:
        return magnetar.EncryptionKeyInfo(pair()[0].encode())


@pytest.mark.parametrize("error", ENDS)
def test_a_loop_goes_on_whatever_raises_in_it(error: type[BaseException]) -> None:
    thread = LoopThread("test")

    async def fail() -> None:
        raise error

    async def answer() -> int:
        return 3

    def raises() -> None:
        raise error

    try:
        with pytest.raises(error):
            thread.run(fail())
        thread.post(raises)
        thread.loop.call_soon_threadsafe(raises)
        assert thread.run(answer()) == 3
    finally:
        thread.loop.call_soon_threadsafe(raises)
        thread.stop()
    assert thread.ended
