"""Advertised listeners: LOOKUP and its HTTP twin answer the addresses of the network that the client names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from tests.support.real_broker import real_broker

TOPIC = "persistent://public/default/t"
LISTENERS = "in:pulsar://10.0.0.1:6650,out:pulsar://example.org:6650,out:pulsar+ssl://example.org:6651"

IN = ("pulsar://10.0.0.1:6650", "pulsar+ssl://example.org:6651")
OUT = ("pulsar://example.org:6650", "pulsar+ssl://example.org:6651")


@pytest.mark.parametrize(
    ("internal", "asked", "urls"),
    [
        ("", None, IN),
        ("", "", IN),
        ("out", None, OUT),
        ("", "out", OUT),
        ("", "in", ("pulsar://10.0.0.1:6650", None)),
        ("", "nowhere", None),
    ],
)
def test_lookup_answers_the_addresses_of_the_listener(
    tmp_path: Path, internal: str, asked: str | None, urls: tuple[str | None, str | None] | None
) -> None:
    """A client names the listener of its network; one that is not advertised is refused (rules 2.3, 2.4, 2.20)."""

    async def main() -> None:
        settings: dict[str, Any] = {"advertisedListeners": LISTENERS, "internalListenerName": internal}
        async with real_broker(tmp_path, **settings) as broker:
            client = await broker.client()
            client.say(c.CommandLookupTopic(TOPIC, 7, advertised_listener_name=asked))
            answer = await client.hear(c.CommandLookupTopicResponse)
            query = "" if asked is None else f"?listenerName={asked}"
            status, found = await broker.ask("GET", f"/lookup/v2/topic/persistent/public/default/t{query}")
            if urls is None:
                assert (answer.response, answer.error) == (c.LookupType.Failed, ServerError.ServiceNotReady)
                assert answer.message == "the broker do not have nowhere listener"
                assert status == 500
                return
            assert (answer.broker_service_url, answer.broker_service_url_tls) == urls
            assert (found.get("brokerUrl"), found.get("brokerUrlTls")) == urls

    asyncio.run(main())
