"""Who may open a WebSocket: the credentials, permissions and origins of REST, and the rights of clients of the wire."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.minted_secrets import kept, signing_key, token
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_peers import PROVIDER, grant

T = "persistent/public/default/t"
PRODUCER, CONSUMER, READER = f"/ws/v2/producer/{T}", f"/ws/v2/consumer/{T}/s", f"/ws/v2/reader/{T}"
SEVERAL = "/ws/v3/consumer/s?topics=persistent://public/default/t"
MESSAGE = json.dumps({"payload": "aGVsbG8="})


async def status(broker: RealBroker, path: str, **headers: str) -> int:
    """The status of a handshake."""
    url = broker.node.broker.service.web_service_url.replace("http", "ws", 1) + path
    try:
        async with connect(url, proxy=None, close_timeout=0.2, additional_headers=headers):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def test_credentials_and_permissions(tmp_path: Path) -> None:
    key = signing_key()

    def bearer(role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token(role, key)}"}

    async def scenario(broker: RealBroker) -> None:
        await grant(broker, app=["produce"], taker=["consume"])
        everything = (PRODUCER, CONSUMER, READER, SEVERAL)

        async def as_role(role: str) -> list[int]:
            return [await status(broker, path, **bearer(role)) for path in everything]

        assert [await status(broker, path) for path in everything] == [401] * 4
        assert await as_role("app") == [101, 403, 403, 403]
        assert await as_role("taker") == [403, 101, 101, 101]
        assert await as_role("stranger") == [403] * 4
        assert await status(broker, f"{PRODUCER}?token={token('app', key)}") == 101
        assert await status(broker, f"{CONSUMER}?token={token('app', key)}") == 403
        assert await status(broker, f"{PRODUCER}?token=junk") == 401
        # a page of another site has no socket, whatever it knows
        elsewhere = {**bearer("app"), "Origin": "https://evil.example"}
        assert await status(broker, PRODUCER, **elsewhere) == 403

    settings = {"tokenSecretKey": f"file:{kept(tmp_path, 'key', key)}", "authenticationProviders": PROVIDER}
    run_on_broker(tmp_path / "data", scenario, authenticationEnabled=True, authorizationEnabled=True, **settings)


def test_rights_and_credentials_that_end_take_the_socket_along(tmp_path: Path) -> None:
    """It cannot come back by itself, either: whoever connects inside the process is asked as at first."""
    key = signing_key()

    async def scenario(broker: RealBroker) -> None:
        await grant(broker, app=["produce"], short=["produce"], other=["produce"])
        url = broker.node.broker.service.web_service_url.replace("http", "ws", 1) + PRODUCER

        async def ended(socket: ClientConnection) -> None:
            try:
                while json.loads(await asyncio.wait_for(socket.recv(), 20)):
                    raise AssertionError("nothing was sent, and something came")
            except ConnectionClosed as closed:
                assert closed.rcvd is not None
                assert (closed.rcvd.code, "does not serve this any more" in closed.rcvd.reason) == (1011, True)

        def opened(role: str, seconds: float) -> connect:
            headers = {"Authorization": f"Bearer {token(role, key, seconds)}"}
            return connect(url, proxy=None, close_timeout=0.2, additional_headers=headers)

        async with opened("app", 3600) as granted, opened("short", 2) as short, opened("other", 3600) as other:
            for socket in (granted, short, other):
                await socket.send(MESSAGE)
                assert json.loads(await socket.recv())["result"] == "ok"
            await grant(broker, short=["produce"], other=["produce"])
            await asyncio.gather(ended(granted), ended(short))
            await other.send(MESSAGE)
            assert json.loads(await other.recv())["result"] == "ok"

    settings = {"tokenSecretKey": f"file:{kept(tmp_path, 'key', key)}", "authenticationProviders": PROVIDER}
    run_on_broker(
        tmp_path / "data",
        scenario,
        authenticationEnabled=True,
        authorizationEnabled=True,
        authenticationRefreshCheckSeconds=1,
        **settings,
    )
