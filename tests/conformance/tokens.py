"""Tokens of the probes that log in, and the settings of a broker that asks for them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import jwt

from tests.conformance.answers import Json

SECRET: Final = b"the secret that signs the tokens of probes, and nothing but those"
SUPERUSER: Final = "admin"


def token(role: str, **claims: Json) -> str:
    """A token for that role, as `pulsar tokens create` makes it."""
    return jwt.encode({"sub": role, **claims}, SECRET, algorithm="HS256")


def signed(payload: bytes, algorithm: str = "HS256", key: bytes = SECRET, **headers: Json) -> str:
    """A token with that payload, whatever it holds."""
    return jwt.api_jws.encode(payload, key, algorithm=algorithm, headers=headers or None)


SETTINGS: Final[Mapping[str, str]] = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
    "tokenSecretKey": f"data:;base64,{base64.b64encode(SECRET).decode()}",
    "superUserRoles": f"{SUPERUSER},proxy",
    "proxyRoles": "proxy,low-proxy",
    "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
    "brokerClientAuthenticationParameters": f"token:{token(SUPERUSER)}",
    "authenticationRefreshCheckSeconds": "2",
    "authorizationAllowWildcardsMatching": "true",
    "transactionCoordinatorEnabled": "true",
}


def credentials(role: str | None) -> dict[str, Json]:
    """The fields of CONNECT by which a role logs in."""
    return {} if role is None else {"auth_method_name": "token", "auth_data": token(role).encode()}


def fields_for(settings: Mapping[str, str]) -> dict[str, Json]:
    """The fields of CONNECT that open a broker with these settings for everything."""
    return credentials(SUPERUSER if "authenticationEnabled" in settings else None)
