"""What dead letters are published with, in virtual time against a whole broker."""

from __future__ import annotations

from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from tests.sim.world import T
from tests.support.delivery_stage import DLQ, S, Stage, nothing, play


def test_a_dead_letter_policy_sets_no_acknowledgement_timeout() -> None:
    """What the application is still at does not come again (rule 0.9)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(dead_letter_policy=ConsumerDeadLetterPolicy(1))
        await stage.send(b"a")
        await consumer.receive()
        await nothing(consumer, 3_600)
        assert stage.backlog() == 1

    play(story)


def test_consumers_of_one_name_have_dead_letters_side_by_side() -> None:
    """Their producers have names of their own (rule 6.5.4)."""

    async def story(stage: Stage) -> None:
        policy = ConsumerDeadLetterPolicy(9)
        await stage.send(b"a", b"b")
        both = [
            await stage.subscribe(consumer_name="worker", dead_letter_policy=policy, receiver_queue_size=0)
            for _ in range(2)
        ]
        for one in both:
            assert await one.reject(await one.receive())
        names = {one.producer_name() for one in await stage.all_of(DLQ)}
        assert len(names) == 2 and all(one.startswith(f"{T}-{S}-worker-") for one in names)

    play(story)


def test_a_dead_letter_topic_has_the_subscription_that_the_policy_names_and_no_other() -> None:
    """It begins with the first letter, although it is made with the topic (rule 6.5.6)."""

    async def story(stage: Stage) -> None:
        found = stage.world.machine.broker.service.topics
        for name, expected in ((None, set()), ("review", {"review"})):
            topic = f"{T}-{name}"
            consumer = await stage.subscribe(
                topic, dead_letter_policy=ConsumerDeadLetterPolicy(9, initial_subscription_name=name)
            )
            await stage.send(b"a", topic=topic)
            assert await consumer.reject(await consumer.receive())
            assert set(found[f"{topic}-{S}-DLQ"].subscriptions) == expected
        assert stage.backlog(f"{T}-review-{S}-DLQ", "review") == 1

    play(story)


def test_a_large_message_is_a_dead_letter_in_chunks() -> None:
    """Chunks are on, and batches off, unless the policy says otherwise (rule 6.5.5)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.subscribe(dead_letter_policy=ConsumerDeadLetterPolicy(9))
        async with await stage.client.create_producer(T, chunking_enabled=True) as producer:
            await producer.send(bytes(120_000))
        await stage.send(b"a", b"b", batch=True)
        for _ in range(3):
            assert await consumer.reject(await consumer.receive())
        letters = await stage.all_of(DLQ)
        assert [(one.data(), one.message_id().batch_index()) for one in letters] == [
            (bytes(120_000), -1),
            (b"a", -1),
            (b"b", -1),
        ]
        assert len(letters[0].message_id().chunks) > 2

    play(story)
