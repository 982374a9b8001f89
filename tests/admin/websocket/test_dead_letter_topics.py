"""Dead letter topics of WebSocket consumers are checked at the handshake; what fails later is in the log."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.minted_secrets import kept, signing_key, token
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_peers import PROVIDER, C, P, grant, message, opened, refused, said

CONSUMER = C + "t/s"
SEVERAL = "/ws/v3/consumer/s?topics=persistent://public/default/t"

_DEAD = "subscriptionType=Shared&maxRedeliverCount=1"


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for kind in ("Shared", "Key_Shared", "Exclusive"):
            for topic in ("bad://x", "a/b", quote("persistent://public/default/")):
                path = f"{C}t/s?subscriptionType={kind}&maxRedeliverCount=1&deadLetterTopic={topic}"
                status, reason = await refused(broker, path)
                assert (status, "deadLetterTopic" in reason) == (400, True)
        assert await refused(broker, f"{C}t/s?{_DEAD}&deadLetterTopic=short") == (101, "")

    run_on_broker(tmp_path, scenario)


def test_a_subscription_with_a_slash_has_no_default(tmp_path: Path) -> None:
    """The name read as a topic of a namespace that there is not, and each dead letter came again for ever."""

    async def scenario(broker: RealBroker) -> None:
        status, reason = await refused(broker, f"{C}t/a%2Fb?{_DEAD}")
        assert (status, "deadLetterTopic is needed: the subscription 'a/b' has a slash" in reason) == (400, True)
        assert await refused(broker, f"{C}t/a%2Fb?{_DEAD}&deadLetterTopic=short") == (101, "")
        assert await refused(broker, f"{C}t/a%2Fb?subscriptionType=Shared") == (101, "")

    run_on_broker(tmp_path, scenario)


def test_who_may_not_produce_to_it_has_no_consumer_with_dead_letters(tmp_path: Path) -> None:
    key = signing_key()

    async def scenario(broker: RealBroker) -> None:
        await grant(broker, taker=["consume"], both=["consume", "produce"])
        taker = {"Authorization": f"Bearer {token('taker', key)}"}
        both = {"Authorization": f"Bearer {token('both', key)}"}
        other = "persistent://public/other/dead"
        for path in (CONSUMER + "?", SEVERAL + "&"):
            status, reason = await refused(broker, f"{path}{_DEAD}", **taker)
            assert (status, "PRODUCE" in reason, "t-s-DLQ" in reason) == (403, True, True)
            assert await refused(broker, f"{path}{_DEAD}", **both) == (101, "")
            status, reason = await refused(broker, f"{path}{_DEAD}&deadLetterTopic={other}", **both)
            assert (status, other in reason) == (403, True)
        # no other type counts redeliveries: there are no dead letters, and nothing is needed for them
        assert await refused(broker, f"{CONSUMER}?maxRedeliverCount=1", **taker) == (101, "")

    settings = {"tokenSecretKey": f"file:{kept(tmp_path, 'key', key)}", "authenticationProviders": PROVIDER}
    run_on_broker(tmp_path / "data", scenario, authenticationEnabled=True, authorizationEnabled=True, **settings)


def test_a_dead_letter_that_cannot_be_published_is_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(broker: RealBroker) -> None:
        path = f"{C}t/s?{_DEAD}&negativeAckRedeliveryDelay=100&deadLetterTopic=public/nowhere/dead"
        async with await opened(broker, path) as consumer, await opened(broker, P + "t") as producer:
            await producer.send(message(1))
            for _ in range(2):
                given = await said(consumer)
                await consumer.send(json.dumps({"type": "negativeAcknowledge", "messageId": given["messageId"]}))
            for _ in range(400):
                if "could not be moved" in caplog.text:
                    break
                await asyncio.sleep(0.02)

    run_on_broker(tmp_path, scenario)
    assert caplog.text.count("could not be moved to persistent://public/nowhere/dead, and is delivered again") == 1
