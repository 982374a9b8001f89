"""The handshake, its repetition when credentials expire, and keep-alive (rules of 1.2 and group 12)."""

from __future__ import annotations

from functools import partial
from typing import Final

from magnetar import __version__
from magnetar.authorization.caller import Caller
from magnetar.broker.connection.session import Session
from magnetar.model.errors import MagnetarError, ServerError
from magnetar.protocol import commands as c
from magnetar.runtime.eager import run_eagerly
from magnetar.security.authentication.original_principal import refusal
from magnetar.security.authentication.peer_certificate import verified_certificate
from magnetar.security.authentication.provider import Credentials
from magnetar.security.authentication.service import FAILED, AuthenticationService
from magnetar.security.identity import Identity

PROTOCOL_VERSION: Final = 21
_NONE: Final = "none"
_INVALID_ROLES: Final = "Invalid roles."


def connect(session: Session, command: c.CommandConnect) -> None:
    """Answer CONNECT: with CONNECTED and the features of this broker (rule 1.2.2) if the client is who it says."""
    session.client_version = command.client_version.replace(" ", "-")
    session.protocol_version = command.protocol_version
    session.features = command.feature_flags or c.FeatureFlags()
    authentication = session.service.authentication
    if authentication is None:
        _accept(session)
        return
    done = partial(_authenticated, authentication, session, command)
    run_eagerly(_identify(authentication, session, command), done, session.service.tasks, "login")


async def _identify(
    authentication: AuthenticationService, session: Session, command: c.CommandConnect
) -> tuple[Identity, Identity | None]:
    """The peer, and the original principal if its credentials came along and are to be checked."""
    method = command.auth_method_name or _NONE
    identity = await authentication.authenticate(
        method, Credentials(command.auth_data or b"", verified_certificate(session.transport), session.address)
    )
    if command.original_principal is None or not session.service.settings.authenticateOriginalAuthData:
        return identity, None
    data = (command.original_auth_data or "").encode()
    return identity, await authentication.authenticate(
        command.original_auth_method or _NONE, Credentials(data, None, session.address)
    )


def _authenticated(
    authentication: AuthenticationService,
    session: Session,
    command: c.CommandConnect,
    found: tuple[Identity, Identity | None] | None,
    error: MagnetarError | None,
) -> None:
    if session.closed:
        return
    if error is not None or found is None:
        refuse(session, ServerError.AuthenticationError, FAILED, f"login refused: {error}")
        return
    identity, original = found
    named = command.original_principal if original is None else original.role
    proxy_roles = authentication.proxy_roles
    why = refusal(identity.role, named, proxy_roles, may_be_same=False)
    if why is None and command.proxy_version is not None and identity.role not in proxy_roles:
        why = "a proxy version without the role of a proxy"
    if why is not None:
        refuse(session, ServerError.AuthorizationError, _INVALID_ROLES, f"login refused: {why}")
        return
    session.identity = original or identity
    session.caller = Caller(identity.role, named, session.address, identity.method)
    _accept(session)


def refuse(session: Session, code: ServerError, said: str, reason: str) -> None:
    """Send ERROR for the handshake, or for its repetition, and close; only the log has the reason."""
    session.send(c.CommandError(-1, code, said))
    session.close(reason)


def _accept(session: Session) -> None:
    session.greeted()
    session.send(
        c.CommandConnected(
            f"Pulsar Server magnetar {__version__}",
            min(session.protocol_version, PROTOCOL_VERSION),
            session.service.settings.maxMessageSize,
            c.FeatureFlags(
                supports_topic_watchers=session.service.settings.enableBrokerSideSubscriptionPatternEvaluation,
                supports_get_partitioned_metadata_without_auto_creation=True,
            ),
        )
    )


def ping(session: Session, command: c.CommandPing) -> None:
    """Answer PING with PONG."""
    session.send(c.CommandPong())


def pong(session: Session, command: c.CommandPong) -> None:
    """Take PONG as a sign of life, which the listener has noted already."""
