"""An issuer of OpenID Connect on this machine: keys that it publishes, and tokens that it signs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.support.signed_tokens import ec_key, rsa_key, signed
from tests.support.token_endpoint import TokenEndpoint, token_endpoint

KEYS_PATH: Final = "/keys"
AUDIENCE: Final = "the-broker"
OPENID_PROVIDER: Final = "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID"


class OpenIdIssuer:
    """Publishes what a test lets it publish."""

    def __init__(self, endpoint: TokenEndpoint) -> None:
        self.endpoint = endpoint
        self.url = endpoint.url
        endpoint.metadata = {
            "issuer": self.url, "token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}{KEYS_PATH}"
        }  # fmt: skip
        self.publish(published("k1"), published("k2", "ES256"))

    def publish(self, *keys: dict[str, Any]) -> None:
        """Replace the key set."""
        self.endpoint.documents[KEYS_PATH] = {"keys": list(keys)}

    @property
    def fetches(self) -> int:
        """How often the key set was read."""
        return self.endpoint.requested.count(KEYS_PATH)

    def token(self, key_id: str | None = "k1", algorithm: str = "RS256", **claims: Any) -> str:
        """A token of this issuer; a claim that is None is left out."""
        now = int(time.time())
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "nbf": now, "exp": now + 600, **claims}
        key = ec_key() if algorithm.startswith("ES") else rsa_key()
        header = {} if key_id is None else {"kid": key_id}
        return signed({name: one for name, one in said.items() if one is not None}, key, algorithm, **header)

    def settings(self, **more: Any) -> dict[str, Any]:
        """The settings of a broker that trusts it."""
        return {
            "authenticationEnabled": True,
            "authenticationProviders": OPENID_PROVIDER,
            "openIDAllowedTokenIssuers": self.url,
            "openIDAllowedAudiences": f"other,{AUDIENCE}",
            "openIDRequireIssuersUseHttps": False,
            **more,
        }


def published(key_id: str, algorithm: str = "RS256", **more: Any) -> dict[str, Any]:
    """A public key as issuers publish it."""
    if algorithm.startswith("ES"):
        document = ECAlgorithm.to_jwk(ec_key().public_key(), as_dict=True)
    else:
        document = RSAAlgorithm.to_jwk(rsa_key().public_key(), as_dict=True)
    return {**document, "kid": key_id, "use": "sig", "alg": algorithm, **more}


@contextmanager
def openid_issuer() -> Iterator[OpenIdIssuer]:
    """Served by a thread until the end."""
    with token_endpoint() as endpoint:
        yield OpenIdIssuer(endpoint)
