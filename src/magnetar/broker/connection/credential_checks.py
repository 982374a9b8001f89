"""Looks at the credentials of open connections: one pass for all of them, a few at a time (rule 12.6).

Expired ones are asked for anew by AUTH_CHALLENGE; the connection goes on meanwhile. It is closed when the client cannot
do that, or did not by the next pass; one whose credentials were revoked is closed at once. A client that reconnects
sends again what was not acknowledged, as after every lost connection.
"""

from __future__ import annotations

import logging
from typing import Final

from magnetar import __version__
from magnetar.broker.connection.handlers.handshake import PROTOCOL_VERSION
from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.login import Login
from magnetar.broker.connection.session import Session
from magnetar.broker.service import BrokerService
from magnetar.protocol import commands as c
from magnetar.runtime.tasks import TaskGroup, in_turns
from magnetar.security.authentication.revocation_list import CHECK_SECONDS

log = logging.getLogger(__name__)

REFRESH: Final = b"PulsarAuthRefresh"
"""The data of the challenge, which clients look for."""
_PER_TURN: Final = 100


class CredentialChecks:
    """The passes of one broker."""

    def __init__(self, service: BrokerService, connections: Connections) -> None:
        self._service = service
        self._connections = connections
        self._tasks = TaskGroup("credentials")

    def start(self) -> None:
        """Begin, if authentication is on."""
        authentication = self._service.authentication
        if authentication is None:
            return
        seconds = self._service.settings.authenticationRefreshCheckSeconds
        self._tasks.repeat(seconds, self.look, "expiry")
        self._tasks.repeat(CHECK_SECONDS, self.look_for_revoked, "revocation")

    async def close(self) -> None:
        """End the passes."""
        await self._tasks.close()

    async def look(self) -> None:
        """Look at all connections once."""
        async for listener in in_turns(list(self._connections), _PER_TURN):
            self._look_at(listener.session, expired=True)

    async def look_for_revoked(self) -> None:
        """Read what has changed on disk, and close the connections whose credentials do not count any more."""
        authentication = self._service.authentication
        if authentication is not None and await authentication.refresh():
            async for listener in in_turns(list(self._connections), _PER_TURN):
                self._look_at(listener.session, expired=False)

    def _look_at(self, session: Session, *, expired: bool) -> None:
        login, authentication = session.login, self._service.authentication
        if login is None or authentication is None or session.closed:
            return
        if (
            authentication.revoked(login.peer)
            or (login.original and authentication.revoked(login.original))
            or authentication.revoked_original(session.caller.original_role)
        ):
            session.close(f"the credentials of {session.caller.named} were revoked")
        elif expired and authentication.expired(login.refreshed):
            why = self._hindrance(session, login)
            if why:
                session.close(f"the credentials of {session.caller.named} have expired: {why}", fault=False)
            else:
                self._challenge(session, login)

    def _hindrance(self, session: Session, login: Login) -> str:
        """Why the client cannot be asked for new credentials; empty if it can."""
        if session.caller.original_role is not None and login.original is None:
            return "a proxy has not forwarded those of the original principal"
        if not session.features.supports_auth_refresh:
            return "the client cannot renew them"
        return "it sent no new ones" if session.protocol.challenged else ""

    def _challenge(self, session: Session, login: Login) -> None:
        log.info("%s: asking for new credentials of %s", session.address, session.caller.named, extra=session.known)
        session.protocol.challenge()
        session.send(
            c.CommandAuthChallenge(
                f"Pulsar Server magnetar {__version__}",
                c.AuthData(login.method, REFRESH),
                min(session.protocol_version, PROTOCOL_VERSION),
            )
        )
