"""A checkpoint subscription follows its topic away from a connection on which the broker has closed it."""

from __future__ import annotations

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from tests.support.scripted_broker import TOPIC, Link, lookups, scripted_broker

MARKED, LAST = c.MessageIdData(3, 6), c.MessageIdData(3, 9)


def subscribes(link: Link) -> c.CommandSubscribe:
    link.greet()
    asked = link.expect(c.CommandSubscribe)
    link.send(c.CommandSuccess(asked.request_id))
    return asked


def answers(link: Link) -> None:
    asked = link.expect(c.CommandGetLastMessageId)
    link.send(c.CommandGetLastMessageIdResponse(LAST, asked.request_id, MARKED))


def acknowledges(link: Link) -> None:
    asked = link.expect(c.CommandAck)
    assert asked.request_id is not None
    link.send(c.CommandAckResponse(asked.consumer_id, request_id=asked.request_id))


def held(url: str) -> tuple[Lookup, CheckpointSubscription]:
    lookup = Lookup(url, timeout=30.0)
    subscription = CheckpointSubscription(lookup, TOPIC, "q")
    assert subscription.hold(START) == ReadPosition(3, 7)
    return lookup, subscription


def test_an_unloaded_topic_is_looked_up_again_before_a_request() -> None:
    """An acknowledgement for a consumer that the broker has closed would never be answered."""

    def unloaded(link: Link) -> None:
        consumer = subscribes(link).consumer_id
        answers(link)
        link.send(c.CommandCloseConsumer(consumer, -1))
        link.until_left()

    def loaded(link: Link) -> None:
        subscribes(link)
        acknowledges(link)
        answers(link)

    with scripted_broker(lookups(2), unloaded, loaded) as url:
        lookup, subscription = held(url)
        with lookup, subscription:
            assert subscription._connection is not None
            while not subscription._connection._pushes:
                subscription._connection._read(30.0)
            subscription.move_to(ReadPosition(3, 10))
            assert subscription.last() == ReadPosition(3, 10)


def test_a_consumer_that_the_broker_does_not_know_is_made_anew() -> None:
    """The topic was unloaded between our look and our question."""

    def forgets(link: Link) -> None:
        subscribes(link)
        answers(link)
        asked = link.expect(c.CommandGetLastMessageId)
        link.send(c.CommandError(asked.request_id, ServerError.MetadataError, "Consumer not found"))
        link.until_left()

    def knows(link: Link) -> None:
        subscribes(link)
        answers(link)

    with scripted_broker(lookups(), forgets, lookups(), knows) as url:
        lookup, subscription = held(url)
        with lookup, subscription:
            assert subscription.last() == ReadPosition(3, 10)
