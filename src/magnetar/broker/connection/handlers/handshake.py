"""The handshake, its repetition when credentials expire, and keep-alive (rules of 1.2 and group 12)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from magnetar import __version__
from magnetar.authorization.caller import Caller
from magnetar.broker.connection.login import ADMISSION, Admission, Login
from magnetar.broker.connection.session import Session
from magnetar.model.errors import MagnetarError, ProtocolError, ServerError
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
    """Answer CONNECT with CONNECTED and the features of this broker (rule 1.2.2) if the client authenticates.

    Raises ProtocolError on a second CONNECT: a client cannot change its identity while it is connected.
    """
    _require_turn(session, command)
    session.client_version = command.client_version.replace(" ", "-")
    session.protocol_version = command.protocol_version
    session.features = command.feature_flags or c.FeatureFlags()
    authentication = session.service.authentication
    admission = session.transport.get_extra_info(ADMISSION)
    if isinstance(admission, Admission):
        session.caller, session.login = admission.caller, admission.login
        _accept(session)
        return
    if authentication is None:
        _accept(session)
        return
    done = partial(_authenticated, authentication, session, command)
    run_eagerly(_identify(authentication, session, command), done, session.service.tasks, "login")


async def _identify(
    authentication: AuthenticationService, session: Session, command: c.CommandConnect
) -> tuple[Identity, Identity | None]:
    """The peer, and the original principal if its credentials came along and are to be checked."""
    identity = await authentication.authenticate(
        _method(command),
        Credentials(command.auth_data or b"", verified_certificate(session.transport), session.address),
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
    if authentication.revoked_original(named):
        refuse(session, ServerError.AuthenticationError, FAILED, f"login refused: {named} was revoked")
        return
    session.login = Login(_method(command), identity, original, command.original_auth_method or "")
    session.caller = Caller(
        identity.role, named, session.address, identity.method, identity.other_roles,
        () if original is None else original.other_roles,
    )  # fmt: skip
    _accept(session)


def _method(command: c.CommandConnect) -> str:
    return command.auth_method_name or _NONE


def _require_turn(session: Session, command: c.CommandConnect | c.CommandAuthResponse) -> None:
    """Raise ProtocolError if the command may not come on an open connection; before that the session looks itself."""
    if session.connected:
        session.protocol.admit(command)


def auth_response(session: Session, command: c.CommandAuthResponse) -> None:
    """Take the new credentials that AUTH_CHALLENGE asked for (rule 12.6). Raises ProtocolError if none was sent."""
    _require_turn(session, command)
    login, authentication = session.login, session.service.authentication
    given = command.response
    if login is None or authentication is None or given is None or given.auth_data is None:
        raise ProtocolError("AUTH_RESPONSE without credentials")
    method, certificate = login.method, verified_certificate(session.transport)
    if login.original is not None:
        method, certificate = login.original_method, None
    credentials = Credentials(given.auth_data, certificate, session.address)
    done = partial(_refreshed, session, login)
    run_eagerly(authentication.authenticate(method, credentials), done, session.service.tasks, "refresh")


def _refreshed(session: Session, login: Login, identity: Identity | None, error: MagnetarError | None) -> None:
    if session.closed:
        return
    if identity is None:
        refuse(session, ServerError.AuthenticationError, FAILED, f"new credentials refused: {error}")
    elif identity.role != login.refreshed.role:
        session.close(f"new credentials of {identity.role}, expected {login.refreshed.role}")
    elif set(identity.other_roles) != set(login.refreshed.other_roles):
        # what is open was allowed by the roles of before; the client connects anew, and all of it is asked again
        session.close(f"new credentials of {identity.role} name other roles besides", fault=False)
    elif login.original is None:
        session.login = replace(login, peer=identity)
    else:
        session.login = replace(login, original=identity)


def refuse(session: Session, code: ServerError, said: str, reason: str) -> None:
    """Send ERROR for the handshake, or for its repetition, and close; only the logs have the reason."""
    authorizer = session.service.authorizer
    if authorizer is not None:
        authorizer.record_refused_login(session.caller, reason, "Connect")
    session.send(c.CommandError(-1, code, said))
    session.close(reason)


def _accept(session: Session) -> None:
    session.protocol.accept()
    session.accepted = True
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
