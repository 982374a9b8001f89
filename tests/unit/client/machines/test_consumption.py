"""The queue of a consumer: permits, batches, acknowledgements, redelivery, readers; and a model of all of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.client.machines.acknowledgement import UNSEEN_MAX, AckTracker, ack_set_of, bits_of
from magnetar.client.machines.consumption import Consumption
from magnetar.client.machines.consumption_limits import ConsumptionLimits
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.client.machines.redelivery.redeliveries import RedeliveryLimits
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, build_entry, metadata_of, payload_of


def entries(*values: bytes, batch: bool = True, chunk_bytes: int = 0) -> list[bytes]:
    """What our own producer makes of these messages."""
    limits = PublicationLimits(batching=batch, chunking=bool(chunk_bytes))
    queue = Publication("t", EntryMaker("p"), limits, chunk_bytes or 5 << 20)
    queue.opened(0)
    for value in values:
        queue.add(OutgoingMessage(value), None, 0.0, 1)
    queue.close_batches(0.0, 1)
    found = Decoder(1 << 28).feed(b"".join(queue.frames(1 << 28)))
    return [one.entry for one in found if isinstance(one, c.CommandSend)]


def consumption(*, ordered: bool = False, skip_to: MessageId | None = None, **limits: object) -> Consumption:
    made = ConsumptionLimits(**limits)  # type: ignore[arg-type]  # the tests name them
    one = Consumption("t", -1, made, ordered=ordered, skip_to=skip_to)
    one.opened(3)
    return one


def message(entry: bytes, number: int, **more: object) -> c.CommandMessage:
    known = {"redelivery_count": 0, "ack_set": (), "consumer_epoch": None, "broker_metadata": None} | more
    return c.CommandMessage(3, c.MessageIdData(1, number), entry=entry, **known)  # type: ignore[arg-type]


def take(one: Consumption) -> Message:
    """Do what a consumer does for its application."""
    assert one.refill()
    found = one.at_hand.pop()
    if not one.at_hand:
        one.used_up()
    return found


def taken(one: Consumption) -> list[bytes]:
    return [take(one).data() for _ in range(one.waiting)]


def flows(one: Consumption) -> list[int]:
    return [command.permits for command in one.commands() if isinstance(command, c.CommandFlow)]


def acked(one: Consumption) -> list[tuple[c.AckType, tuple[c.MessageIdData, ...]]]:
    found = [command for command in one.commands() if isinstance(command, c.CommandAck)]
    return [(command.ack_type, command.message_ids) for command in found]


def test_permits_come_back_when_half_is_taken() -> None:
    """Rule 5.2.2."""
    one = consumption(queue_size=10)
    assert flows(one) == [10]
    (batch,) = entries(*[b"%d" % number for number in range(10)])
    one.received(message(batch, 0))
    for _ in range(4):
        take(one)
    assert flows(one) == []
    take(one)
    assert flows(one) == [5]
    one.check()


def test_a_queue_of_one_and_of_none() -> None:
    """Neither permits more than it says (rules 5.2.2 and 6.1.2)."""
    one = consumption(queue_size=1)
    assert flows(one) == [1]
    one.received(message(entries(b"a", batch=False)[0], 0))
    assert flows(one) == []
    take(one)
    assert flows(one) == [1]
    none = consumption(queue_size=0)
    assert flows(none) == []
    none.permits.ask_one()
    none.permits.ask_one()
    assert flows(none) == [1]
    none.permits.ask_one()
    assert flows(none) == []
    none.received(message(entries(b"a", batch=False)[0], 0))
    assert flows(none) == [] and taken(none) == [b"a"]
    none.permits.ask_one()
    assert flows(none) == [1]
    none.check()


def test_without_a_queue_a_batch_is_made_up_for() -> None:
    """The broker charges each message of a batch that is not acknowledged (rules 5.1.10, 5.2.1)."""
    none = consumption(queue_size=0)
    none.permits.ask_one()
    assert flows(none) == [1]
    none.received(message(entries(b"a", b"b", b"c", b"d")[0], 0))
    assert taken(none) == [b"a", b"b", b"c", b"d"]
    none.permits.ask_one()
    assert flows(none) == [4]
    none.received(message(entries(b"a", b"b", b"c", b"d")[0], 1, ack_set=(0b1000,)))
    assert taken(none) == [b"d"]
    none.permits.ask_one()
    assert flows(none) == [1]
    none.check()


def test_a_batch_is_acknowledged_with_its_last_message() -> None:
    one = consumption()
    one.received(message(entries(b"a", b"b", b"c")[0], 7))
    messages = [take(one) for _ in range(3)]
    for each in messages[:2]:
        one.acknowledge_message(each)
    assert acked(one) == []
    one.acknowledge(messages[2].message_id())
    assert acked(one) == [(c.AckType.Individual, (c.MessageIdData(1, 7),))]


def test_batch_index_acknowledgement_says_what_is_left() -> None:
    one = consumption(batch_index_ack=True)
    one.received(message(entries(b"a", b"b", b"c")[0], 7))
    messages = [take(one) for _ in range(3)]
    one.acknowledge_message(messages[1])
    assert acked(one) == [(c.AckType.Individual, (c.MessageIdData(1, 7, ack_set=(0b101,)),))]
    one.acknowledge_cumulative(messages[1].message_id())
    assert acked(one) == [(c.AckType.Cumulative, (c.MessageIdData(1, 7, ack_set=(0b100,)),))]


def test_cumulative_within_a_batch_stops_before_it() -> None:
    """Without batch index acknowledgement the entry before it is the last one that is done with."""
    one = consumption(ordered=True)
    one.received(message(entries(b"a", b"b")[0], 7))
    first, second = take(one), take(one)
    one.acknowledge_cumulative(first.message_id())
    assert acked(one) == [(c.AckType.Cumulative, (c.MessageIdData(1, 6),))]
    one.acknowledge_cumulative(second.message_id())
    assert acked(one) == [(c.AckType.Cumulative, (c.MessageIdData(1, 7),))]


def test_what_the_broker_knows_of_a_batch_is_not_shown_again() -> None:
    """Its permits are given back."""
    one = consumption(queue_size=4)
    assert flows(one) == [4]
    one.received(message(entries(b"a", b"b", b"c", b"d")[0], 7, ack_set=(0b1010,)))
    assert taken(one) == [b"b", b"d"]
    assert flows(one) == [4]
    one.check()


def test_a_lost_connection_empties_the_queue_but_keeps_acknowledgements() -> None:
    one = consumption(queue_size=4)
    one.commands()
    for number in range(3):
        one.received(message(entries(b"%d" % number, batch=False)[0], number))
    one.acknowledge_message(take(one))
    one.lost()
    assert not one.waiting and one.commands() == []
    one.opened(9)
    found = one.commands()
    assert found == [
        c.CommandAck(9, c.AckType.Individual, (c.MessageIdData(1, 0),)),
        c.CommandFlow(9, 4),
    ]


def test_a_refused_message_comes_again_after_the_delay() -> None:
    """One request for each entry, by id where messages are shared (rules 6.2.1 and 6.2.2)."""
    one = consumption(redelivery=RedeliveryLimits(negative_ack_delay=2.0))
    one.commands()
    one.received(message(entries(b"a", b"b")[0], 7))
    messages = [take(one) for _ in range(2)]
    for each in messages:
        one.redeliveries.refuse(each.message_id(), 10.0)
    assert 12.0 <= one.redeliveries.next_due <= 12.256
    one.redeliver_due(11.9)
    assert one.commands() == []
    one.redeliver_due(12.256)
    assert one.commands() == [c.CommandRedeliverUnacknowledgedMessages(3, (c.MessageIdData(1, 7),))]


def test_an_ordered_subscription_gets_everything_again() -> None:
    """What was sent before the broker heard of it is left out by its epoch (rule 5.8.5)."""
    one = consumption(ordered=True, queue_size=4, redelivery=RedeliveryLimits(negative_ack_delay=1.0))
    one.commands()
    plain = [entries(b"%d" % number, batch=False)[0] for number in range(3)]
    for number in range(3):
        one.received(message(plain[number], number, consumer_epoch=0))
    one.redeliveries.refuse(take(one).message_id(), 0.0)
    one.redeliver_due(1.256)
    assert not one.waiting
    assert one.commands() == [c.CommandRedeliverUnacknowledgedMessages(3, (), 1), c.CommandFlow(3, 3)]
    one.received(message(plain[2], 9, consumer_epoch=0))
    assert not one.waiting
    one.received(message(plain[0], 0, consumer_epoch=1))
    assert taken(one) == [b"0"]
    one.check()


def test_a_reader_goes_on_within_a_batch() -> None:
    start = MessageId(-1, 1, 7, 0)
    one = consumption(ordered=True, skip_to=start)
    one.received(message(entries(b"a", b"b", b"c")[0], 7))
    assert taken(one) == [b"b", b"c"]


def test_chunks_become_one_message() -> None:
    """An acknowledgement is for all of them (rules 6.6.1 and 6.6.5)."""
    value = bytes(range(256)) * 8
    parts = entries(value, batch=False, chunk_bytes=1_000)
    assert len(parts) > 2
    one = consumption()
    for number, part in enumerate(parts):
        one.received(message(part, number))
    found = take(one)
    assert found.data() == value
    assert found.message_id().chunks == tuple((1, number) for number in range(len(parts)))
    one.acknowledge_message(found)
    assert acked(one) == [(c.AckType.Individual, tuple(c.MessageIdData(1, number) for number in range(len(parts))))]


def test_all_chunks_of_a_message_that_is_damaged_as_a_whole_are_done_with() -> None:
    """One that stayed would be in the backlog for ever, and take the room of another message."""
    one = consumption(pending_chunked_messages=1)
    *before, last = entries(b"x" * 3_000, batch=False, chunk_bytes=1_000)
    for number, part in enumerate(before):
        one.received(message(part, number))
    one.received(message(build_entry(metadata_of(last), payload_of(last)[:-1]), len(before)))
    assert not one.chunks.incomplete and not one.waiting and one.counters.rejected == 1
    acks = [each for each in one.commands() if isinstance(each, c.CommandAck)]
    assert all(each.validation_error is c.ValidationError.BatchDeSerializeError for each in acks)
    places = sorted((each.ledger, each.entry) for ack in acks for each in ack.message_ids)
    assert places == [(1, number) for number in range(len(before) + 1)]
    for number, part in enumerate(entries(b"y" * 3_000, batch=False, chunk_bytes=1_000)):
        one.received(message(part, 100 + number))
    assert taken(one) == [b"y" * 3_000]
    one.check()


def test_chunks_that_never_come_are_acknowledged_and_bounded() -> None:
    """Rules 6.6.2 and 6.6.3."""
    one = consumption(pending_chunked_messages=1, acknowledge_oldest_chunked=True)
    value = bytes(3_000)
    for number in range(2):
        queue = Publication("t", EntryMaker(f"p{number}"), PublicationLimits(chunking=True), 1_000)
        queue.opened(0)
        queue.add(OutgoingMessage(value), None, 0.0, 1)
        sent = Decoder(1 << 28).feed(b"".join(queue.frames(1 << 28)))[0]
        assert isinstance(sent, c.CommandSend)
        one.received(message(sent.entry, number))
    assert acked(one) == [(c.AckType.Individual, (c.MessageIdData(1, 0),))]
    one.expire_chunks(100_000)
    one.expire_chunks(200_000)
    assert acked(one) == [(c.AckType.Individual, (c.MessageIdData(1, 1),))]
    assert not one.chunks.incomplete


def test_what_cannot_be_read_is_said_so() -> None:
    """The broker hears why (rule 3.7.8); what is encrypted stays unacknowledged (rule 6.11.2)."""
    one = consumption(queue_size=2)
    one.commands()
    one.received(message(b"", 0))
    lies = EntryMetadata("p", 0, 1, compression=CompressionType.LZ4, uncompressed_size=10)
    one.received(message(build_entry(lies, b"??"), 1))
    one.received(message(entries(b"a")[0], 2, checksum_ok=False))
    one.received(message(build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=5), b"?"), 3))
    sealed = EntryMetadata("p", 0, 1, encryption_keys=(EncryptionKey("k", b""),))
    one.received(message(build_entry(sealed, b"secret"), 4))
    assert not one.waiting
    found = [command for command in one.commands() if isinstance(command, c.CommandAck)]
    assert [(command.message_ids[0].entry, command.validation_error) for command in found] == [
        (0, c.ValidationError.BatchDeSerializeError),
        (1, c.ValidationError.DecompressionError),
        (2, c.ValidationError.ChecksumMismatch),
        (3, c.ValidationError.BatchDeSerializeError),
    ]


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ack_sets(indexes: set[int]) -> None:
    bits = sum(1 << index for index in indexes)
    words = ack_set_of(bits)
    assert bits_of(words) == bits and all(-(1 << 63) <= word < 1 << 63 for word in words)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "send",
                "send",
                "take",
                "take",
                "take entries",
                "put back",
                "ack",
                "ack",
                "cumulative",
                "lost",
                "all again",
                "write",
            ]
        ),
        st.integers(0, 9),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(ACTIONS, st.booleans())
def test_nothing_is_acknowledged_that_the_application_did_not(actions: list[tuple[str, int]], by_index: bool) -> None:
    """A model broker applies what is written; a message is gone only if the application acknowledged it, or one after
    it cumulatively."""
    one = consumption(ordered=True, queue_size=8, batch_index_ack=by_index)
    allowed: set[tuple[int, int]] = set()
    gone: set[tuple[int, int]] = set()
    sizes = [1 + number % 3 for number in range(10)]
    batches = [entries(*[b"x"] * size)[0] for size in sizes]
    delivered, handed = 0, []

    def hear() -> None:
        for command in one.commands():
            if isinstance(command, c.CommandAck):
                for place in command.message_ids:
                    upto = command.ack_type is c.AckType.Cumulative
                    left = bits_of(place.ack_set) if place.ack_set else 0
                    for number in range(10):
                        if number == place.entry:
                            gone.update((number, i) for i in range(sizes[number]) if not left >> i & 1)
                        elif upto and number < place.entry:
                            gone.update((number, i) for i in range(sizes[number]))

    for action, number in actions:
        if action == "send" and delivered < 10:
            one.received(message(batches[delivered], delivered, consumer_epoch=one.epoch))
            delivered += 1
        elif action == "take" and one.waiting:
            handed.append(take(one).message_id())
        elif action == "take entries" and one.waiting:
            part = one.take_entries(1 + number % 4)
            assert 0 < sum(len(range(*span)) for each in part for span in each.ranges()) <= 1 + number % 4
            for each in part:
                for span in each.ranges():
                    handed += [each.envelope.message_id(index) for index in range(*span)]
        elif action == "put back" and one.waiting:
            before, generation = one.waiting, one.queue.generation
            one.put_back(one.take_entries(1 + number % 4), generation)
            assert one.waiting == before
        elif action == "ack" and handed:
            chosen = handed[number % len(handed)]
            allowed.add((chosen.entry_id(), chosen.batch_index()))
            one.acknowledge(chosen)
        elif action == "cumulative" and handed:
            chosen = handed[number % len(handed)]
            for entry in range(chosen.entry_id()):
                allowed.update((entry, i) for i in range(sizes[entry]))
            allowed.update((chosen.entry_id(), i) for i in range(chosen.batch_index() + 1))
            one.acknowledge_cumulative(chosen)
        elif action == "lost":
            one.lost()
            one.opened(number)
            delivered = 0
        elif action == "all again":
            one.redeliver_all()
            delivered = 0
        elif action == "write":
            hear()
        one.check()
    hear()
    assert gone <= allowed


def test_ids_of_batches_that_never_came_are_kept_up_to_a_bound() -> None:
    tracker = AckTracker(by_index=False)
    for entry in range(UNSEEN_MAX + 10):
        assert not tracker.individual((1, entry), 0, 2)
    # the oldest are forgotten, so their other message does not complete them
    assert not tracker.individual((1, 0), 1, 2)
    assert tracker.individual((1, UNSEEN_MAX + 9), 1, 2)
    assert len(tracker.take_individual()) == 1
