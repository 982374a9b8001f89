"""Raw publishing: receipts in order, nothing lost with a connection, refusals raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from magnetar.client import producer as module
from magnetar.client.errors import ClientTimeoutError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry, payload_of
from tests.support.scripted_broker import TOPIC, Link, Script, lookups, scripted_broker


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.01)


@contextmanager
def producing(url: str, name: str | None = None, send_timeout: float = 5.0) -> Iterator[Producer]:
    with Lookup(url, timeout=5) as lookup, Producer(lookup, TOPIC, name, send_timeout=send_timeout) as producer:
        yield producer


def opens(link: Link, name: str = "made-up", last: int = -1) -> c.CommandProducer:
    link.greet()
    asked = link.expect(c.CommandProducer)
    link.send(c.CommandProducerSuccess(asked.request_id, asked.producer_name or name, last, b"", producer_ready=True))
    return asked


def closes(link: Link) -> None:
    link.send(c.CommandSuccess(link.expect(c.CommandCloseProducer).request_id))


def send(producer: Producer, *sequence_ids: int, messages: int = 1) -> None:
    for sequence in sequence_ids:
        highest = sequence + messages - 1
        producer.send(build_entry(EntryMetadata("p", sequence, 1), b"x"), messages, sequence, highest)


def receipt(sent: c.CommandSend) -> c.CommandSendReceipt:
    return c.CommandSendReceipt(sent.producer_id, sent.sequence_id, c.MessageIdData(1, sent.sequence_id), 0)


def test_takes_the_given_name_and_counts_receipts() -> None:
    def script(link: Link) -> None:
        asked = opens(link, "of-the-broker")
        assert (asked.producer_name, asked.user_provided_producer_name) == (None, False)
        for sequence in (0, 10):
            sent = link.expect(c.CommandSend)
            assert (sent.sequence_id, sent.num_messages, sent.highest_sequence_id) == (sequence, 10, sequence + 9)
            assert sent.checksum_ok
            link.send(receipt(sent))
        closes(link)

    with scripted_broker(lookups(), script) as url, producing(url) as producer:
        assert producer.name == "of-the-broker"
        send(producer, 0, 10, messages=10)
        producer.flush()
        assert (producer.messages_confirmed, producer.last_sequence_id) == (20, 19)


def test_sends_again_what_has_no_receipt() -> None:
    """After a reconnect the producer sends again, in order, what has no receipt (rule 6.10.2)."""

    def breaks(link: Link) -> None:
        opens(link)
        link.send(receipt(link.expect(c.CommandSend)))
        link.expect(c.CommandSend)

    def goes_on(link: Link) -> None:
        asked = opens(link)
        assert (asked.producer_name, asked.epoch) == ("stable", 1)
        for sequence in (1, 2):
            sent = link.expect(c.CommandSend)
            assert sent.sequence_id == sequence
            link.send(receipt(sent))
        closes(link)

    with scripted_broker(lookups(2), breaks, goes_on) as url, producing(url, "stable") as producer:
        send(producer, 0, 1, 2)
        producer.flush()
        assert producer.messages_confirmed == 3


def test_does_not_repeat_what_the_broker_says_it_has() -> None:
    def breaks(link: Link) -> None:
        opens(link)
        for _ in range(3):
            link.expect(c.CommandSend)

    def knows(link: Link) -> None:
        opens(link, last=1)
        sent = link.expect(c.CommandSend)
        assert sent.sequence_id == 2
        link.send(receipt(sent))
        closes(link)

    with scripted_broker(lookups(2), breaks, knows) as url, producing(url, "stable") as producer:
        send(producer, 0, 1, 2)
        producer.flush()
        assert producer.messages_confirmed == 3


def refuses(error: ServerError) -> Script:
    def script(link: Link) -> None:
        opens(link)
        sent = link.expect(c.CommandSend)
        link.send(c.CommandSendError(sent.producer_id, sent.sequence_id, error, "no"))
        if error is not ServerError.PersistenceError:
            closes(link)

    return script


def test_a_refusal_reaches_the_caller() -> None:
    with scripted_broker(lookups(), refuses(ServerError.TopicTerminatedError)) as url, producing(url) as producer:
        send(producer, 0)
        with pytest.raises(RefusedError, match=f"publish to {TOPIC} as made-up: TopicTerminatedError: no"):
            producer.flush()


def test_a_full_disk_is_tried_again() -> None:
    def recovered(link: Link) -> None:
        opens(link)
        link.send(receipt(link.expect(c.CommandSend)))
        closes(link)

    scripts = lookups(2), refuses(ServerError.PersistenceError), recovered
    with scripted_broker(*scripts) as url, producing(url) as producer:
        send(producer, 0)
        producer.flush()
        assert producer.messages_confirmed == 1


def test_no_receipt_is_a_timeout() -> None:
    def script(link: Link) -> None:
        opens(link)
        link.expect(c.CommandSend)
        closes(link)

    with scripted_broker(lookups(), script) as url, producing(url, send_timeout=0.3) as producer:
        send(producer, 0)
        with pytest.raises(ClientTimeoutError, match="1 entries of producer made-up got no receipt"):
            producer.flush()


def test_the_window_blocks_until_receipts_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WINDOW_ENTRIES", 2)

    def script(link: Link) -> None:
        opens(link)
        sent = [link.expect(c.CommandSend) for _ in range(3)]
        # Were the fourth sent before a receipt, it would be read here and then be out of its turn.
        link.send(receipt(sent[0]))
        for one in (*sent[1:], link.expect(c.CommandSend)):
            link.send(receipt(one))
        closes(link)

    with scripted_broker(lookups(), script) as url, producing(url) as producer:
        send(producer, 0, 1, 2, 3)
        producer.flush()
        assert producer.messages_confirmed == 4


@pytest.mark.parametrize("stored", [False, True], ids=["in part", "as a whole"])
def test_a_message_in_chunks_goes_on_where_receipts_ended(stored: bool) -> None:
    """The broker knows of such a message when it has the last chunk, and not before (rule 3.4.7)."""

    def breaks(link: Link) -> None:
        opens(link, last=4)
        sent = [link.expect(c.CommandSend) for _ in range(3)]
        assert [(one.sequence_id, one.num_messages, one.is_chunk) for one in sent] == [(7, 1, True)] * 3
        link.send(receipt(sent[0]))

    def knows(link: Link) -> None:
        opens(link, last=7 if stored else 4)
        for part in () if stored else (b"b", b"c"):
            sent = link.expect(c.CommandSend)
            assert (sent.sequence_id, sent.is_chunk, payload_of(sent.entry)) == (7, True, part)
            link.send(receipt(sent))
        sent = link.expect(c.CommandSend)
        assert (sent.sequence_id, sent.is_chunk) == (8, False)
        link.send(receipt(sent))
        closes(link)

    with scripted_broker(lookups(2), breaks, knows) as url, producing(url, "stable") as producer:
        producer.send_chunks([build_entry(EntryMetadata("p", 7, 1), part) for part in (b"a", b"b", b"c")], 7)
        send(producer, 8)
        producer.flush()
        assert (producer.messages_confirmed, producer.last_sequence_id) == (2, 8)
