"""The queue of a producer against a model: any order of sending, receipts, lost connections and time."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from magnetar.client.errors import ConnectionLostError, MessageTooLargeError
from magnetar.client.machines.outgoing.batch_wait import NEVER
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType, decompress
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import metadata_of, payload_of, split_batch

STEPS = st.lists(
    st.sampled_from(
        [
            "add",
            "add",
            "join",
            "join",
            "join",
            "join many",
            "add alone",
            "add in a transaction",
            "close",
            "write",
            "store",
            "store",
            "receipt",
            "lost",
            "wait",
        ]
    ),
    min_size=1,
    max_size=60,
)


def publication(max_message_size: int = 5 << 20, **limits: object) -> Publication:
    given_limits = PublicationLimits(**limits)  # type: ignore[arg-type]  # the tests name them
    return Publication("t", EntryMaker("p"), given_limits, max_message_size)


def remembering(memory: PendingBytes, **limits: object) -> Publication:
    given_limits = PublicationLimits(**limits)  # type: ignore[arg-type]  # the tests name them
    return Publication("t", EntryMaker("p", CompressionType.ZLIB), given_limits, 5 << 20, memory=memory)


def sends(frames: list[bytes]) -> list[c.CommandSend]:
    found = Decoder(1 << 28).feed(b"".join(frames))
    assert all(isinstance(one, c.CommandSend) for one in found)
    return [one for one in found if isinstance(one, c.CommandSend)]


def values(entry: bytes) -> list[bytes]:
    metadata, payload = metadata_of(entry), payload_of(entry)
    payload = decompress(metadata.compression, payload, metadata.uncompressed_size, 1 << 30)
    if metadata.num_messages_in_batch is None:
        return [payload]
    return [value for _, value in split_batch(payload, metadata.num_messages_in_batch)]


def receipt(send: c.CommandSend, entry: int = 0) -> c.CommandSendReceipt:
    return c.CommandSendReceipt(send.producer_id, send.sequence_id, c.MessageIdData(1, entry), 0)


class ModelBroker:
    """What is on the wire, what is stored, and which receipts have not come; a cut loses wire and receipts."""

    def __init__(self) -> None:
        self.wire: list[c.CommandSend] = []
        self.stored: list[bytes] = []
        self.receipts: list[c.CommandSend] = []

    def store(self) -> None:
        if self.wire:
            send = self.wire.pop(0)
            self.stored += values(send.entry)
            self.receipts.append(send)

    def cut(self) -> None:
        self.wire.clear()
        self.receipts.clear()


@settings(max_examples=300)
@given(STEPS, st.booleans(), st.sampled_from([0.0, 5.0]))
@example(["add in a transaction", "write", "store", "lost"], False, 0.0)
def test_whatever_happens(steps: list[str], batching: bool, send_timeout: float) -> None:
    """Each message has one fate; stored in the order sent, repeats aside; confirmed is stored, in a transaction once
    (rule 6.10.2)."""
    queue = publication(batching=batching, batch_messages=3, send_timeout=send_timeout, pending_messages=0)
    broker, now, sent, producer_id = ModelBroker(), 0.0, 0, 0
    confirmed: list[bytes] = []
    failed: list[bytes] = []
    aborted: list[bytes] = []
    in_transactions: set[bytes] = set()
    queue.opened(producer_id)

    def step(action: str) -> None:
        nonlocal now, sent, producer_id
        if action.startswith("add"):
            value = b"%d" % sent
            sent += 1
            txn = c.TxnId(0, sent // 4) if action == "add in a transaction" else None
            if txn is not None:
                in_transactions.add(value)
            message = OutgoingMessage(value, deliver_at=1 if action == "add alone" else 0, txn=txn)
            queue.add(message, value, now, 1)
        elif action == "join":
            fate = queue.join(b"%d" % sent)
            if fate is not None:
                fate.tokens.append((fate.messages - 1, b"%d" % sent))
                sent += 1
        elif action == "join many":
            values = [b"%d" % number for number in range(sent, sent + 4)]
            fate, count = queue.join_many([b"", *values, b""], 1, 5)
            if fate is not None:
                fate.tokens += enumerate(values[:count], start=fate.messages - count)
            sent += count
        elif action == "close":
            queue.close_batches(now, 1)
        elif action == "write":
            broker.wire += sends(queue.frames(60))
        elif action == "store":
            broker.store()
        elif action == "receipt" and broker.receipts:
            confirmed.extend(queue.receipted(receipt(broker.receipts.pop(0))).tokens)
        elif action == "lost":
            broker.cut()
            for one in queue.lost():
                aborted.extend(one.tokens)
            queue.check()
            producer_id += 1
            queue.opened(producer_id)
        elif action == "wait":
            now += 2.0
            for one in queue.expire(now, 1):
                failed.extend(one.tokens)
        queue.check()

    for action in steps:
        step(action)
    for _ in range(200):
        for action in ("close", "write", "store", "receipt"):
            step(action)
    assert queue.idle
    everything = [b"%d" % number for number in range(sent)]
    assert sorted(confirmed + failed + aborted, key=int) == everything
    assert set(aborted) <= in_transactions
    for value in in_transactions.intersection(confirmed):
        assert broker.stored.count(value) == 1, "twice in a transaction that may be committed"
    assert [*dict.fromkeys(confirmed)] == confirmed == sorted(confirmed, key=int)
    firsts = list(dict.fromkeys(broker.stored))
    assert set(confirmed) <= set(firsts)
    assert firsts == sorted(firsts, key=int)
    if not send_timeout:
        assert not failed and set(firsts) | set(aborted) == set(everything)


def test_a_receipt_for_another_message_ends_the_connection() -> None:
    queue = publication()
    queue.opened(0)
    queue.add(OutgoingMessage(b"a"), "a", 0.0, 1)
    (send,) = sends(queue.frames(1 << 20))
    with pytest.raises(ConnectionLostError, match="answered message 7 where 0 was to come"):
        queue.receipted(c.CommandSendReceipt(0, 7, None, 0))
    assert queue.receipted(receipt(send)).tokens == ["a"]


def test_a_batch_has_limits() -> None:
    """Messages, bytes and time (rule 3.5.1); the batch says its ids, and the first message's key (rule 3.5.2)."""
    queue = publication(batching=True, batch_messages=3, batch_bytes=1_000, batch_delay=0.5)
    queue.opened(4)
    assert queue.batch_due == NEVER
    for number in range(4):
        queue.add(OutgoingMessage(b"x", key=f"k{number}", properties=(("n", str(number)),)), number, 10.0, 1)
    assert queue.batch_due == 10.5
    (first,) = sends(queue.frames(1 << 20))
    assert (first.producer_id, first.sequence_id, first.highest_sequence_id, first.num_messages) == (4, 0, 2, 3)
    metadata = metadata_of(first.entry)
    assert (metadata.partition_key, metadata.num_messages_in_batch) == ("k0", 3)
    singles = [single for single, _ in split_batch(payload_of(first.entry), 3)]
    assert [(one.partition_key, one.properties, one.sequence_id) for one in singles] == [
        (f"k{number}", (("n", str(number)),), number) for number in range(3)
    ]
    queue.add(OutgoingMessage(b"y" * 900), 4, 10.1, 1)
    queue.add(OutgoingMessage(b"z" * 900), 5, 10.1, 1)
    queue.close_batches(11.0, 1)
    left = [values(send.entry) for send in sends(queue.frames(1 << 20))]
    assert left == [[b"x"], [b"y" * 900], [b"z" * 900]]


def test_bytes_alone_join_what_is_open() -> None:
    """They are written as any message is; what has a key between them keeps its place, and no limit is passed."""
    joined, added = publication(batching=True, batch_messages=600), publication(batching=True, batch_messages=600)
    for queue in (joined, added):
        queue.begin_at(16_300)  # sequence ids of two and of three bytes
        queue.opened(0)
    assert joined.join(b"first") is None
    for number in range(590):
        value = b"v" * (number % 300)
        with_key = OutgoingMessage(value, key="k" if number in (0, 300) else None, sequence_id=None)
        added.add(with_key, None, 0.0, 1)
        if with_key.key is not None:
            joined.add(with_key, None, 0.0, 1)
        else:
            fate = joined.join(value)
            assert fate is not None and fate.messages == number + 1
    for _ in range(20):
        added.add(OutgoingMessage(b"end"), None, 0.0, 1)
        if joined.join(b"end") is None:
            joined.add(OutgoingMessage(b"end"), None, 0.0, 1)
    for queue in (joined, added):
        queue.check()
        queue.close_batches(0.0, 1)
    assert joined.frames(1 << 30) == added.frames(1 << 30)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 300), max_size=40), st.integers(0, 5), st.integers(0, 40), st.integers(1, 20))
def test_many_join_as_one_after_the_other_does(sizes: list[int], at: int, stop: int, batch_messages: int) -> None:
    contents = [b"x" * size for size in sizes]
    one, many = (publication(batching=True, batch_messages=batch_messages, batch_bytes=2_000) for _ in range(2))
    for queue in (one, many):
        queue.opened(0)
        queue.add(OutgoingMessage(b"first", key="k"), None, 0.0, 1)
    count = 0
    for content in contents[at:stop]:
        if one.join(content) is None:
            break
        count += 1
    fate, joined = many.join_many(contents, at, max(min(stop, len(contents)), 0))
    assert joined == count and (fate is None) == (count == 0)
    for queue in (one, many):
        queue.check()
        queue.close_batches(0.0, 1)
    assert one.frames(1 << 20) == many.frames(1 << 20)


def test_batches_by_key() -> None:
    """One for each key, in the order of their first messages, without a highest id (rule 3.5.8)."""
    queue = publication(batching=True, batch_by_key=True)
    queue.opened(0)
    for number, key in enumerate("abacb"):
        queue.add(OutgoingMessage(b"%d" % number, key=key), number, 0.0, 1)
    queue.close_batches(0.0, 1)
    found = sends(queue.frames(1 << 20))
    assert [(send.sequence_id, values(send.entry)) for send in found] == [
        (0, [b"0", b"2"]),
        (1, [b"1", b"4"]),
        (3, [b"3"]),
    ]
    assert {send.highest_sequence_id for send in found} == {None}


def test_a_change_of_the_transaction_ends_a_batch() -> None:
    """A batch never mixes transactions (rules 3.5.7, 9.9)."""
    queue = publication(batching=True)
    queue.opened(0)
    for number, txn in enumerate([None, c.TxnId(0, 1), c.TxnId(0, 1), c.TxnId(0, 2)]):
        queue.add(OutgoingMessage(b"%d" % number, txn=txn), number, 0.0, 1)
    queue.close_batches(0.0, 1)
    found = sends(queue.frames(1 << 20))
    assert [(send.txn, len(values(send.entry))) for send in found] == [
        (None, 1),
        (c.TxnId(0, 1), 2),
        (c.TxnId(0, 2), 1),
    ]


@pytest.mark.parametrize("kind", list(CompressionType))
def test_chunks_of_a_large_message(kind: CompressionType) -> None:
    """They have one sequence id and complete one message, whose id names them all (rules 3.6.2 and 3.6.3)."""
    queue = Publication("t", EntryMaker("p", kind), PublicationLimits(chunking=True), 1_000)
    queue.opened(0)
    value = bytes(number * 7919 % 251 for number in range(5_000)) + b"".join(
        number.to_bytes(8, "big") for number in range(1_000)
    )
    queue.add(OutgoingMessage(value, key="k"), "token", 0.0, 1)
    found = sends(queue.frames(1 << 20))
    assert len(found) > 2 and all(len(send.entry) <= 1_000 and send.is_chunk for send in found)
    assert {send.sequence_id for send in found} == {0}
    payload = b"".join(payload_of(send.entry) for send in found)
    assert decompress(kind, payload, len(value), 1 << 30) == value
    done = [queue.receipted(receipt(send, number)) for number, send in enumerate(found)]
    assert [one.tokens for one in done] == [[]] * (len(found) - 1) + [["token"]]
    assert done[-1].places == [(1, number) for number in range(len(found))]
    assert queue.idle


def test_what_is_too_large_changes_nothing() -> None:
    """Rule 3.3.8."""
    queue = publication(1_000)
    queue.opened(0)
    with pytest.raises(MessageTooLargeError, match=r"a message of 20\d\d bytes is larger than the 1000"):
        queue.add(OutgoingMessage(bytes(2_000)), "a", 0.0, 1)
    queue.check()
    assert queue.idle
    queue.add(OutgoingMessage(b"b"), "b", 0.0, 1)
    assert [send.sequence_id for send in sends(queue.frames(1 << 20))] == [0]


def test_sequence_ids_of_the_application() -> None:
    """They are taken as they are; the next one that is not given is above all before it."""
    queue = publication()
    queue.begin_at(5)
    queue.opened(0)
    for given_id in (None, 20, 7, None):
        queue.add(OutgoingMessage(b"", sequence_id=given_id), given_id, 0.0, 1)
    found = sends(queue.frames(1 << 20))
    assert [send.sequence_id for send in found] == [5, 20, 7, 21]
    for send in found:
        queue.receipted(receipt(send))
    assert queue.last_sequence_id == 21


@given(STEPS, st.booleans(), st.booleans())
@example(["add alone", "wait", "wait", "wait", "wait"], False, False)
@example(["add in a transaction", "wait", "close", "wait", "write", "store", "lost"], True, False)
def test_the_memory_that_is_counted_is_what_waits(steps: list[str], batching: bool, by_key: bool) -> None:
    """Of two queues together, whatever happens to them; nothing is counted when nothing waits (rule 6.10.6)."""
    memory, now = PendingBytes(1_000), 0.0
    options = {"batching": batching, "batch_messages": 5, "batch_by_key": by_key, "send_timeout": 5.0}
    queues = [remembering(memory, **options) for _ in range(2)]
    wires: list[list[c.CommandSend]] = [[], []]
    for queue in queues:
        queue.opened(0)
    for number, action in enumerate(steps):
        which = number % 2
        queue, wire = queues[which], wires[which]
        value = b"x" * (number * 7 % 60)
        if action.startswith("add"):
            txn = c.TxnId(0, 1) if action == "add in a transaction" else None
            at = int(action == "add alone")
            queue.add(OutgoingMessage(value, key=f"k{number % 3}", deliver_at=at, txn=txn), None, now, 1)
        elif action == "join":
            queue.join(value)
        elif action == "join many":
            queue.join_many([value, b"", value], 0, 3)
        elif action == "close":
            queue.close_batches(now, 1)
        elif action in ("write", "store"):
            wire += sends(queue.frames(1_000))
        elif action == "receipt" and wire:
            queue.receipted(receipt(wire.pop(0)))
        elif action == "lost":
            queue.lost()
            wire.clear()
            queue.opened(0)
        elif action == "wait":
            now += 2.0
            queue.expire(now, 1)
        assert memory.used == sum(one.size for one in queues)
        assert memory.full == (memory.used >= 1_000)
    for queue in queues:
        queue.give_up()
    assert memory.used == 0


def test_what_joins_together_stays_within_the_memory() -> None:
    memory = PendingBytes(600)
    queue = remembering(memory, batching=True)
    queue.add(OutgoingMessage(b"first"), None, 0.0, 1)
    _, count = queue.join_many([b"x" * 100] * 20, 0, 20)
    assert 0 < count < 20
    assert memory.used <= 600
    assert queue.join_many([b"x" * 600], 0, 1) == (None, 0)


def test_those_who_found_no_memory_are_called_once_there_is_some() -> None:
    memory, called = PendingBytes(10), []
    memory.free -= 25
    memory.waiting.add(lambda: called.append("room"))
    memory.release(10)
    assert (memory.full, called) == (True, [])
    memory.release(10)
    assert (memory.full, called) == (False, ["room"])
    memory.release(5)
    assert called == ["room"]


def test_what_threads_hand_over_counts_before_the_loop_has_it() -> None:
    memory = PendingBytes(10, threads=True)
    memory.crossing += 10
    assert (memory.full, memory.free > 0) == (True, True)
    memory.free -= 10
    memory.crossed += 10
    assert (memory.full, memory.used) == (True, 10)
    memory.release(10)
    assert not memory.full
