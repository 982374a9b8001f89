"""SUBSCRIBE that goes back in time (rule 4.3.7) where the disk does not give what it needs."""

from __future__ import annotations

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.rawclient import RawClientError
from tests.sim.world import T, World, run_seed
from tests.support.conversations import connected


@pytest.mark.parametrize("durable", [True, False])
def test_who_goes_back_in_time_is_refused_when_the_place_cannot_be_read_and_may_come_again(
    caplog: pytest.LogCaptureFixture, durable: bool
) -> None:
    """A cursor that is not durable goes with the one who wanted it, or the topic would be kept for it."""

    async def simulation(world: World) -> None:
        world.storage = StoreSettings(cache_bytes=1)
        await world.boot()
        client = await connected()
        producer = await client.producer(T)
        for number in range(20):
            await producer.publish(str(number).encode())
            await world.quiet(1)
        world.machine.files.fail("read")
        with pytest.raises(RawClientError) as refused:
            await client.subscribe(T, "s", durable=durable, start_message_rollback_duration_sec=10)
        assert refused.value.code is ServerError.PersistenceError
        assert not client.heard(c.CommandError), "it is refused once"
        assert not client.lost.done()
        assert ("s" in world.machine.broker.service.topics[T].subscriptions) is durable
        await client.subscribe(T, "s", durable=durable, start_message_rollback_duration_sec=10)

    run_seed(simulation, 1, settings=Settings())
    assert not [one.getMessage() for one in caplog.records if one.exc_info], "a seek to nowhere was tried"
