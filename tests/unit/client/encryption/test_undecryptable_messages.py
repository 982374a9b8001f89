"""Messages that no key opens: the log names them, readers come to an end, and table views fail or pass them over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

import magnetar
from magnetar.client.errors import ClientTimeoutError, SealedMessageError
from magnetar.testing import PulsarBroker
from tests.support.encrypted_entries import pair

ACTIONS = magnetar.ConsumerCryptoFailureAction


class Keys(magnetar.CryptoKeyReader):
    def __init__(self, number: int = 0) -> None:
        self.number = number

    def get_public_key(self, key_name: str, metadata: object) -> magnetar.EncryptionKeyInfo:
        return magnetar.EncryptionKeyInfo(pair(self.number)[1].encode())

    def get_private_key(self, key_name: str, metadata: object) -> magnetar.EncryptionKeyInfo:
        return magnetar.EncryptionKeyInfo(pair(self.number)[0].encode())


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker(seed=1) as broker:
        yield broker


def publish(client: magnetar.Client, kinds: str) -> None:
    """Send a message for each letter: s is sealed, c in clear; its content and key are letter and number."""
    sealed = client.create_producer("t", encryption_key="k", crypto_key_reader=Keys())
    clear = client.create_producer("t")
    for number, kind in enumerate(kinds):
        (sealed if kind == "s" else clear).send(f"{kind}{number}".encode(), partition_key=f"{kind}{number}")


@pytest.mark.parametrize("action", ACTIONS)
def test_the_log_names_what_no_key_was_given_for(
    broker: PulsarBroker, action: magnetar.ConsumerCryptoFailureAction, caplog: pytest.LogCaptureFixture
) -> None:
    """FAIL, which is the default, too: it was silent."""
    with broker.client() as client, caplog.at_level(logging.ERROR):
        consumer = client.subscribe("t", "s", crypto_failure_action=action)
        publish(client, "sc")
        assert (consumer.receive(60_000).data() == b"c1") is (action is not ACTIONS.CONSUME)
    [said] = [one for one in caplog.messages if "encrypted for the keys 'k'" in one]
    assert "give crypto_key_reader" in said and "persistent://public/default/t: entry " in said


@pytest.mark.parametrize("reader", [None, Keys(1)], ids=["no key", "wrong key"])
@pytest.mark.parametrize("action", [ACTIONS.FAIL, ACTIONS.DISCARD])
@pytest.mark.parametrize("kinds", ["s", "cs", "scs", "ssc", "c"])
@pytest.mark.parametrize("size", [1, 1_000])
def test_a_reader_comes_to_an_end(
    broker: PulsarBroker, reader: Any, action: magnetar.ConsumerCryptoFailureAction, kinds: str, size: int
) -> None:
    with broker.client() as client:
        publish(client, kinds)
        opened = client.create_reader(
            "t", magnetar.MessageId.earliest, crypto_key_reader=reader, crypto_failure_action=action,
            receiver_queue_size=size,
        )  # fmt: skip
        wanted = [f"c{number}".encode() for number, kind in enumerate(kinds) if kind == "c"]
        for _ in range(2):
            got = []
            while opened.has_message_available():
                got.append(opened.read_next(60_000).data())
            assert got == wanted
            opened.seek(magnetar.MessageId.earliest)


@pytest.mark.parametrize("reader", [None, Keys(1)], ids=["no key", "wrong key"])
def test_a_view_passes_over_what_is_discarded_and_fails_otherwise(broker: PulsarBroker, reader: Any) -> None:
    with broker.client() as client:
        publish(client, "cs")
        with pytest.raises(SealedMessageError, match="is encrypted"):
            client.create_table_view("t", crypto_key_reader=reader)
        with client.create_table_view("t", crypto_key_reader=reader, crypto_failure_action=ACTIONS.DISCARD) as view:
            assert dict(view) == {"c0": b"c0"}
            publish(client, "csss")
            view.refresh()
            assert set(view) == {"c0"}
        with client.create_table_view("t", crypto_key_reader=Keys()) as view:
            assert {"c0", "s1", "s2", "s3"} == set(view)


def test_a_view_of_nothing_but_what_no_key_opens_fails_at_once(broker: PulsarBroker) -> None:
    """It has failed before it waits: a time-out of the operation longer than this test may take."""
    with broker.client(operation_timeout_seconds=3600) as client:
        publish(client, "s")
        for _ in range(3):
            with pytest.raises(SealedMessageError, match="is encrypted"):
                client.create_table_view("t")


def test_a_view_that_is_open_fails_at_a_message_that_no_key_opens(broker: PulsarBroker) -> None:
    with broker.client(operation_timeout_seconds=5) as client:
        publish(client, "c")
        with client.create_table_view("t") as view:
            publish(client, "s")
            with pytest.raises(SealedMessageError):
                view.refresh()
            with pytest.raises(SealedMessageError):
                len(view)


def test_a_receive_in_vain_ends_in_time(broker: PulsarBroker) -> None:
    with broker.client() as client:
        consumer = client.subscribe("t", "s")
        publish(client, "s")
        with pytest.raises(ClientTimeoutError):
            consumer.receive(10)
