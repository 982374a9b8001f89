"""What a WebSocket refuses names what is wrong with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed

from magnetar.admin.websocket.frames import _instant
from magnetar.client.errors import RefusedError
from magnetar.model.errors import ServerError
from tests.support.minted_secrets import kept, signing_key, token
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_peers import PROVIDER, C, P, R, grant, message, opened, refused

_HUGE = "99999999999999999999"


def test_wrong_options(tmp_path: Path) -> None:
    cases = [
        (f"{P}t?producerName={'x' * 5000}", "producer_name"),
        (f"{P}t?initialSequenceId={_HUGE}", "initialSequenceId needs to be <= 9223372036854775806"),
        (f"{P}t?initialSequenceId=-2", "initialSequenceId needs to be >= -1"),
        (f"{P}t?batchingMaxMessages={_HUGE}", "batchingMaxMessages needs to be <= 2147483647"),
        (f"{P}t?sendTimeoutMillis={_HUGE}", "sendTimeoutMillis needs to be <= 2147483647"),
        (f"{P}t?sendTimeoutMillis={'9' * 5000}", "For input string"),
        (f"{P}t?sendTimeoutMillis=1_0", "For input string"),
        (f"{C}t/s?receiverQueueSize=99999999999999", "receiverQueueSize needs to be <= 2147483647"),
        (f"{C}t/s?priorityLevel={_HUGE}", "priorityLevel needs to be <= 2147483647"),
        (f"{C}t/s?negativeAckRedeliveryDelay={_HUGE}", "negativeAckRedeliveryDelay needs to be <= 2147483647"),
        (f"{C}t/s?negativeAckRedeliveryDelay=-1", "redeliveryDelay needs to be >= 0"),
        (f"{C}t/s?consumerName={'x' * 5000}", "consumer_name"),
        (f"{R}t?messageId=junk", "Invalid query params: messageId: 'junk' is no message id"),
        ("/ws/v3/consumer/s?topics=a&topicsPattern=b", "topics or topicsPattern, not both"),
    ]

    async def scenario(broker: RealBroker) -> None:
        for path, said in cases:
            status, reason = await refused(broker, path)
            assert (status, said in reason) == (400, True), (path[:80], reason)
        for query in ("initialSequenceId=9223372036854775806", f"producerName={quote('ü 日本')}"):
            async with await opened(broker, f"{P}t?{query}") as socket:
                await socket.send(message(1))
                assert json.loads(await socket.recv())["result"] == "ok"

    run_on_broker(tmp_path, scenario)


async def closed(broker: RealBroker, frame: Any) -> tuple[int, str]:
    """How a consumer's socket is closed for a frame."""
    async with await opened(broker, C + "t/s?pullMode=true") as socket:
        await socket.send(json.dumps(frame))
        with pytest.raises(ConnectionClosed) as found:
            await asyncio.wait_for(socket.recv(), 20)
    assert found.value.rcvd is not None
    return found.value.rcvd.code, found.value.rcvd.reason


def test_wrong_frames_of_consumers(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert await closed(broker, {"messageId": "zz"}) == (1011, "'zz' is no message id")
        for given, bounds in ((-1, "from 0 to 2147483647"), (2**31, "to 2147483647"), (-(2**31) - 1, "to 2147483647")):
            code, reason = await closed(broker, {"type": "permit", "permitMessages": given})
            assert (code, bounds in reason, str(given) in reason) == (1007, True, True), reason

    run_on_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_704_164_645_006, "2024-01-02T03:04:05.006Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
        (2**63 - 1, "+292278994-08-17T07:12:55.807Z"),  # of java.time.Instant.ofEpochMilli(Long.MAX_VALUE)
    ],
)
def test_times_of_any_year(ms: int, text: str) -> None:
    assert _instant(ms) == text


def test_a_refusal_names_neither_the_clients_inside_nor_their_login(tmp_path: Path) -> None:
    key = signing_key()
    error = RefusedError("subscribe", ServerError.AuthorizationError, "no right", "advice", "host:1")
    assert error.reason == (
        "subscribe: AuthorizationError: no right; have it granted: pulsar-admin topics grant-permission"
    )

    async def scenario(broker: RealBroker) -> None:
        await grant(broker)
        bearer = {"Authorization": f"Bearer {token('stranger', key)}"}
        path = "/ws/v3/consumer/s?topics=persistent://public/default/t"
        status, reason = await refused(broker, path, **bearer)
        assert (status, "persistent://public/default/t" in reason, "grant-permission" in reason) == (403, True, True)
        assert "no credentials" not in reason and "127.0.0.1" not in reason

    settings = {"tokenSecretKey": f"file:{kept(tmp_path, 'key', key)}", "authenticationProviders": PROVIDER}
    run_on_broker(tmp_path / "data", scenario, authenticationEnabled=True, authorizationEnabled=True, **settings)
