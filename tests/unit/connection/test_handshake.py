"""What the handshake and its repetition show the providers, whose credentials they renew, and what comes too late."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.broker.connection.listener import Connections, Listener
from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError, ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.runtime.tasks import TaskGroup
from magnetar.security.authentication.provider import Credentials
from magnetar.security.identity import Identity
from tests.support.connections import FakeTransport, fake_service, hang_up

CERTIFICATE = b"what TLS has verified"


class Authentication:
    """Believes everybody, notes what it is shown, and keeps them waiting if it is told to."""

    proxy_roles = frozenset(("proxy",))

    def __init__(self) -> None:
        self.shown: list[tuple[str, Credentials]] = []
        self.waits: asyncio.Event | None = None

    async def authenticate(self, method: str, credentials: Credentials) -> Identity:
        self.shown.append((method, credentials))
        if self.waits is not None:
            await self.waits.wait()
        role = credentials.data.decode().partition(" ")[0]
        if not role:
            raise AuthenticationError("it names nobody")
        return Identity(role, method, fingerprint=credentials.data.decode())

    def revoked_original(self, role: str | None) -> bool:
        return False


class Door:
    """One connection that has come in over TLS, and what its broker knows."""

    def __init__(self) -> None:
        self.authentication = Authentication()
        self.refused: list[str] = []
        service: Any = fake_service()
        service.settings = Settings(authenticateOriginalAuthData=True)
        service.authentication = self.authentication
        service.tasks = TaskGroup("test")
        service.authorizer = SimpleNamespace(
            record_refused_login=lambda caller, reason, request: self.refused.append(f"{request}: {reason}"),
        )
        self.service = service
        self.listener = Listener(service, Connections())
        self.transport = FakeTransport(self.listener)
        context = SimpleNamespace(verify_mode=ssl.CERT_REQUIRED)
        found: Any = SimpleNamespace(context=context, getpeercert=lambda binary_form: CERTIFICATE)
        self.transport._extra["ssl_object"] = found  # type: ignore[attr-defined]  # asyncio's own
        self.listener.connection_made(self.transport)
        self.session = self.listener.session

    async def say(self, *commands: c.Command) -> None:
        self.listener.data_received(b"".join(map(codec.encode, commands)))
        for _ in range(5):
            await asyncio.sleep(0)

    def heard(self, kind: type[c.Command]) -> list[Any]:
        return [one for one in self.transport.heard() if isinstance(one, kind)]


def run(scenario: Callable[[Door], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        door = Door()
        await scenario(door)
        hang_up(door.listener)
        await door.service.tasks.close()

    asyncio.run(main())


def connect(data: str, **original: Any) -> c.CommandConnect:
    return c.CommandConnect("x", 21, "peer's", data.encode(), **original)


FORWARDED: dict[str, Any] = {
    "original_principal": "alice", "original_auth_data": "alice 1", "original_auth_method": "original's"
}  # fmt: skip


@pytest.mark.parametrize("forwarded", [False, True])
def test_the_certificate_is_the_peers_and_forwarded_credentials_have_none(forwarded: bool) -> None:
    """A proxy's certificate says nothing of whom it speaks for (rules 12.4, 12.13)."""

    async def scenario(door: Door) -> None:
        await door.say(connect("proxy 1", **FORWARDED) if forwarded else connect("alice 1"))
        peer = ("peer's", Credentials(b"proxy 1" if forwarded else b"alice 1", CERTIFICATE, "/10.0.0.1:5000"))
        original = ("original's", Credentials(b"alice 1", None, "/10.0.0.1:5000"))
        assert door.authentication.shown == ([peer, original] if forwarded else [peer])
        assert len(door.heard(c.CommandConnected)) == 1
        assert door.session.caller.role == ("proxy" if forwarded else "alice")

    run(scenario)


@pytest.mark.parametrize("forwarded", [False, True])
def test_new_credentials_take_the_place_of_those_that_were_asked_for(forwarded: bool) -> None:
    """Of the peer, by its method and with its certificate, or of whom it speaks for (rule 12.6)."""

    async def scenario(door: Door) -> None:
        await door.say(connect("proxy 1", **FORWARDED) if forwarded else connect("alice 1"))
        door.authentication.shown.clear()
        door.session.protocol.challenge()
        await door.say(c.CommandAuthResponse("x", c.AuthData("said now", b"alice 2"), 21))
        method, certificate = ("original's", None) if forwarded else ("peer's", CERTIFICATE)
        assert door.authentication.shown == [(method, Credentials(b"alice 2", certificate, "/10.0.0.1:5000"))]
        login = door.session.login
        assert login is not None
        assert login.refreshed == Identity("alice", method, fingerprint="alice 2")
        assert login.peer.fingerprint == ("proxy 1" if forwarded else "alice 2")
        assert not door.transport.closing

    run(scenario)


@pytest.mark.parametrize("given", [None, c.AuthData("peer's", None)])
def test_an_answer_without_credentials_ends_the_connection(given: c.AuthData | None) -> None:
    async def scenario(door: Door) -> None:
        await door.say(connect("alice 1"))
        door.authentication.shown.clear()
        door.session.protocol.challenge()
        await door.say(c.CommandAuthResponse("x", given, 21))
        assert door.transport.closing
        assert door.authentication.shown == []

    run(scenario)


@pytest.mark.parametrize("connecting", [False, True])
def test_an_answer_that_nobody_asked_for_ends_the_connection(
    connecting: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As the first command, or while the credentials of the first are being looked at: no fault of the broker."""

    async def scenario(door: Door) -> None:
        door.authentication.waits = asyncio.Event()
        if connecting:
            await door.say(connect("alice 1"))
        await door.say(c.CommandAuthResponse("x", c.AuthData("peer's", b"alice 2"), 21))
        assert door.transport.closing
        assert len(door.authentication.shown) == connecting
        assert not [one.getMessage() for one in caplog.records if one.exc_info]

    run(scenario)


@pytest.mark.parametrize("again", [False, True])
def test_refused_credentials_are_recorded_and_answered_once(again: bool) -> None:
    """The client does not hear why (rule 12.1)."""

    async def scenario(door: Door) -> None:
        if again:
            await door.say(connect("alice 1"))
            door.session.protocol.challenge()
            await door.say(c.CommandAuthResponse("x", c.AuthData("peer's", b""), 21))
        else:
            await door.say(connect(""))
        (error,) = door.heard(c.CommandError)
        assert (error.request_id, error.error) == (-1, ServerError.AuthenticationError)
        assert error.message == "Failed to authenticate"
        what = "new credentials refused" if again else "login refused"
        assert door.refused == [f"Connect: {what}: it names nobody"]
        assert door.transport.closing

    run(scenario)


@pytest.mark.parametrize("data", ["alice 2", ""])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_found_out_of_a_connection_that_has_ended_meanwhile_changes_nothing(again: bool, data: str) -> None:
    """A password takes its time; nobody logs in any more, and no refusal is recorded."""

    async def scenario(door: Door) -> None:
        if again:
            await door.say(connect("alice 1"))
            door.session.protocol.challenge()
        login, said = door.session.login, len(door.transport.heard())
        door.authentication.waits = asyncio.Event()
        await door.say(c.CommandAuthResponse("x", c.AuthData("peer's", data.encode()), 21) if again else connect(data))
        door.session.close("for another reason")
        door.authentication.waits.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert door.session.login is login
        assert door.session.accepted is again
        assert len(door.transport.heard()) == said
        assert door.refused == []

    run(scenario)


@pytest.mark.parametrize(
    ("command", "revoked", "code"),
    [
        (connect(""), False, ServerError.AuthenticationError),
        (connect("alice", proxy_version="1"), False, ServerError.AuthorizationError),
        (connect("alice", original_principal="bob"), False, ServerError.AuthenticationError),
        (connect("proxy"), False, ServerError.AuthorizationError),
        (connect("proxy", **FORWARDED), True, ServerError.AuthenticationError),
    ],
)
def test_who_is_refused_is_nobody_and_never_was_let_in(
    command: c.CommandConnect, revoked: bool, code: ServerError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error is all that it hears, and no count of logins has it."""

    async def scenario(door: Door) -> None:
        monkeypatch.setattr(door.authentication, "revoked_original", lambda role: revoked)
        before = door.session.caller
        await door.say(command)
        (error,) = door.heard(c.CommandError)
        assert (error.request_id, error.error) == (-1, code)
        assert door.heard(c.CommandConnected) == []
        assert len(door.refused) == 1
        assert door.session.closed and not door.session.accepted
        assert (door.session.login, door.session.caller) == (None, before)

    run(scenario)


@pytest.mark.parametrize("flags", [None, *(c.FeatureFlags(*[at == which for at in range(6)]) for which in range(6))])
def test_what_a_client_says_of_itself_is_known_from_then_on(flags: c.FeatureFlags | None) -> None:
    """What it can do decides what it is sent (rule 1.2.5); who says nothing can do none of it."""

    async def scenario() -> None:
        listener = Listener(fake_service(), Connections())
        listener.connection_made(FakeTransport(listener))
        listener.data_received(codec.encode(c.CommandConnect("Pulsar Test 1.2", 19, feature_flags=flags)))
        session = listener.session
        assert session.features == (flags or c.FeatureFlags())
        assert (session.client_version, session.protocol_version) == ("Pulsar-Test-1.2", 19)
        hang_up(listener)

    asyncio.run(scenario())
