"""Chunks of messages that are not whole: what is waited for, what is acknowledged, and what comes again."""

from __future__ import annotations

from magnetar.client.machines.chunk_buffer import PATIENCE_MS, ChunkBuffer, Joined
from magnetar.client.machines.consumption import Consumption
from magnetar.client.machines.consumption_limits import ConsumptionLimits
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry

_REDELIVER = c.CommandRedeliverUnacknowledgedMessages
NOW = 1_700_000_000_000
OLD = NOW - 10 * PATIENCE_MS


def add(buffer: ChunkBuffer, uuid: str, number: int, entry: int, published: int = OLD) -> Joined:
    metadata = EntryMetadata(
        "p", 0, published, uuid=uuid, chunk_id=number, num_chunks_from_msg=3, total_chunk_msg_size=3
    )  # fmt: skip
    return buffer.add((1, entry), metadata, b"%d" % number)


def test_an_old_message_whose_chunks_are_on_their_way_is_whole() -> None:
    """Its chunks were acknowledged at the first look, since it was published more than a minute before: a consumer that
    read a backlog never had it."""
    buffer, joined = ChunkBuffer(10), Joined()
    for number in range(3):
        assert buffer.expire(NOW + number * PATIENCE_MS) == []
        joined = add(buffer, "a", number, number, OLD + 2 * number * PATIENCE_MS)
        assert joined.acknowledged == ()
    assert joined.whole is not None and joined.places == ((1, 0), (1, 1), (1, 2))
    assert not buffer.waiting


def test_what_comes_no_more_is_acknowledged_and_so_is_what_comes_too_late() -> None:
    """The chunk that came at last stayed in the backlog for ever (rules 6.6.3 and 6.6.4)."""
    buffer = ChunkBuffer(10)
    add(buffer, "a", 0, 0)
    add(buffer, "a", 1, 1)
    assert buffer.expire(NOW) == [] and buffer.expire(NOW + PATIENCE_MS) == [] and buffer.waiting
    assert buffer.expire(NOW + PATIENCE_MS + 1) == [(1, 0), (1, 1)] and not buffer.waiting
    assert add(buffer, "a", 2, 2, NOW + PATIENCE_MS) == Joined(acknowledged=((1, 2),))


def test_a_chunk_without_a_beginning_is_acknowledged_if_it_is_old() -> None:
    """It stays if it is young: its beginning may come yet, as for a consumer that another one's messages come to."""
    buffer = ChunkBuffer(10)
    assert add(buffer, "old", 2, 2) == Joined() and buffer.waiting
    assert add(buffer, "young", 2, 3, NOW - 1) == Joined()
    assert add(buffer, "begins", 1, 5) == Joined()
    add(buffer, "begins", 0, 4)
    assert buffer.expire(NOW) == [(1, 2)]
    assert add(buffer, "begins", 1, 5).acknowledged == ()
    whole = add(buffer, "begins", 2, 6)
    assert whole.whole is not None and whole.places == ((1, 4), (1, 5), (1, 6))


def test_chunks_of_what_comes_again_are_not_acknowledged() -> None:
    """What was dropped for want of room begins anew when it comes again, and needs all its chunks (rule 6.6.2)."""
    buffer = ChunkBuffer(1)
    add(buffer, "a", 0, 0)
    assert add(buffer, "b", 0, 1) == Joined()
    assert add(buffer, "a", 1, 2) == Joined() == add(buffer, "a", 2, 3)
    assert buffer.expire(NOW) == []
    last = Joined()
    for number, entry in enumerate((1, 4, 5)):
        last = add(buffer, "b", number, entry)
    assert last.whole is not None
    for number, entry in enumerate((0, 2, 3)):
        last = add(buffer, "a", number, entry)
    assert last.whole is not None and last.places == ((1, 0), (1, 2), (1, 3))


def test_the_rest_of_what_was_dropped_and_acknowledged_is_acknowledged() -> None:
    buffer = ChunkBuffer(1, acknowledge_oldest=True)
    add(buffer, "a", 0, 0, NOW)
    assert add(buffer, "b", 0, 1, NOW) == Joined(acknowledged=((1, 0),))
    assert add(buffer, "a", 1, 2, NOW) == Joined(acknowledged=((1, 2),))


def test_the_patience_begins_when_more_may_come() -> None:
    """A consumer with a full queue or paused was waited for in vain: what was whole in the log was acknowledged."""
    buffer = ChunkBuffer(10)
    add(buffer, "a", 0, 0)
    assert buffer.expire(NOW) == []
    for minute in range(1, 4):
        assert buffer.expire(NOW + minute * PATIENCE_MS + minute, asked=False) == []
    later = NOW + 4 * PATIENCE_MS
    assert buffer.expire(later) == [] and buffer.expire(later + PATIENCE_MS) == []
    assert buffer.expire(later + PATIENCE_MS + 1) == [(1, 0)]


def test_what_is_handed_back_comes_again_with_all_its_chunks() -> None:
    """Nothing of it is acknowledged, and what is old and has no beginning still is."""
    buffer = ChunkBuffer(10)
    add(buffer, "a", 0, 0)
    add(buffer, "old", 1, 9)
    assert buffer.hand_back() == [(1, 0)] and not buffer.incomplete and buffer.waiting
    assert add(buffer, "a", 1, 1) == Joined(again=((1, 1),))
    assert add(buffer, "a", 1, 1) == Joined(), "it is asked for once"
    assert buffer.expire(NOW) == [(1, 9)]
    found = [add(buffer, "a", number, number) for number in range(3)]
    assert found[-1].whole is not None and found[-1].places == ((1, 0), (1, 1), (1, 2))


def test_a_chunk_without_a_beginning_is_no_incomplete_message() -> None:
    """A consumer without a queue asks for the rest of one although it has no room."""
    buffer = ChunkBuffer(10)
    add(buffer, "a", 1, 1)
    assert buffer.waiting and not buffer.incomplete
    add(buffer, "b", 0, 2)
    assert buffer.incomplete


def test_nothing_is_kept_of_what_was_dropped_for_want_of_room() -> None:
    buffer = ChunkBuffer(1)
    for number in range(5):
        add(buffer, str(number), 0, number)
        buffer.expire(NOW)
    assert len(buffer._noted) == 1


def test_chunks_are_not_given_up_while_the_broker_may_send_none() -> None:
    """An application that took longer than a minute lost the message that its full queue was amid; so did one
    that paused, and one behind the consumer that has become the active one of a Failover subscription."""
    one = Consumption("t", -1, ConsumptionLimits(queue_size=4), ordered=False)
    one.opened(3)
    one.commands()
    begun = EntryMetadata("p", 0, OLD, uuid="a", chunk_id=0, num_chunks_from_msg=3, total_chunk_msg_size=3)
    for number, metadata in enumerate([begun] + [EntryMetadata("p", 1, OLD)] * 3):
        place = c.MessageIdData(1, number)
        one.received(c.CommandMessage(3, place, 0, (), None, None, entry=build_entry(metadata, b"a")))
    assert one.commands() == [], "no permits are due before messages are taken"
    for now in (0, 100_000, 200_000):
        one.expire_chunks(now)
    assert one.commands() == []
    for _ in range(3):
        assert one.refill() and one.at_hand.pop().data() == b"a" and one.used_up() == 1
    one.paused = True
    for now in (300_000, 400_000):
        one.expire_chunks(now)
    one.paused = False
    assert one.commands() == [c.CommandFlow(3, 4)] and one.chunks.incomplete
    one.expire_chunks(500_000)
    one.expire_chunks(600_000, active=False)
    one.expire_chunks(700_000)
    assert one.commands() == [] and not one.chunks.incomplete
    one.check()


def test_a_chunk_that_was_on_its_way_when_others_were_handed_back_comes_again_with_them() -> None:
    """It stayed with the consumer, and the others waited for it in vain and were acknowledged."""
    one = Consumption("t", -1, ConsumptionLimits(queue_size=4), ordered=False)
    one.opened(3)
    one.commands()
    found = [EntryMetadata("p", 0, OLD, uuid="a", chunk_id=number, num_chunks_from_msg=2) for number in range(2)]
    first, last = (
        c.CommandMessage(3, c.MessageIdData(1, number), 0, (), None, None, entry=build_entry(metadata, b"a"))
        for number, metadata in enumerate(found)
    )
    one.received(first)
    assert one.hand_back()
    asked = [one.commands()]
    one.received(last)
    asked.append(one.commands())
    places = [each.message_ids for each in asked[0] + asked[1] if isinstance(each, _REDELIVER)]
    assert places == [(first.message_id,), (last.message_id,)]
    one.received(first)
    one.received(last)
    assert one.refill() and one.at_hand.pop().data() == b"aa"
