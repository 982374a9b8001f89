"""The provider of the method ``tls``: the client's certificate, which TLS has verified (rule 12.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID

from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError
from magnetar.runtime.clock import Clock
from magnetar.security.authentication.certificate_fingerprint import fingerprint, other_fingerprints
from magnetar.security.authentication.provider import AuthenticationProvider, Credentials
from magnetar.security.identity import Identity
from magnetar.security.tokens.claims import checked_role

TLS: Final = "tls"
_ALTERNATIVES: Final[dict[str, type[x509.UniformResourceIdentifier] | type[x509.DNSName] | type[x509.RFC822Name]]] = {
    "URI": x509.UniformResourceIdentifier,
    "DNS": x509.DNSName,
    "EMAIL": x509.RFC822Name,
}


class TlsProvider(AuthenticationProvider):
    """Takes the role from one field of the certificate.

    TLS looks at the certificate's time once, when the connection begins; Apache Pulsar does no more. Here it counts for
    as long as it says, on the wire and over HTTP.
    """

    method = TLS

    def __init__(self, role_field: str, clock: Clock) -> None:
        """``role_field``: ``CN``, or the kind of a subject alternative name: ``URI``, ``DNS`` or ``EMAIL``."""
        self._role_field = role_field
        self._clock = clock

    @staticmethod
    def of(settings: Settings, clock: Clock) -> TlsProvider:
        """The provider that the settings ask for."""
        return TlsProvider(settings.tlsClientRoleField, clock)

    async def authenticate(self, credentials: Credentials) -> Identity:
        """Return whom the certificate names. Raises AuthenticationError."""
        data = credentials.certificate
        if data is None:
            raise AuthenticationError("no client certificate that TLS has verified")
        try:
            certificate = x509.load_der_x509_certificate(data)
            names = list(_names(certificate, self._role_field))
            others = other_fingerprints(certificate, data)
            until = certificate.not_valid_after_utc
        except (ValueError, x509.DuplicateExtension) as error:
            raise AuthenticationError(f"a certificate that cannot be read: {type(error).__name__}") from None
        if until.timestamp() * 1000 < self._clock.now_ms():
            raise AuthenticationError(f"the certificate has expired ({until:%Y-%m-%d %H:%M:%S} UTC)")
        if not names:
            raise AuthenticationError(f"the certificate has no {self._role_field}")
        role = checked_role(names[0], f"the {self._role_field} of the certificate")
        return Identity(role, TLS, until.timestamp(), fingerprint=fingerprint(data), other_fingerprints=others)


def _names(certificate: x509.Certificate, role_field: str) -> Iterator[str]:
    if role_field in _ALTERNATIVES:
        try:
            found = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
        except x509.ExtensionNotFound:
            return
        assert isinstance(found, x509.SubjectAlternativeName)
        yield from filter(None, found.get_values_for_type(_ALTERNATIVES[role_field]))
        return
    # Java writes a name from its end, and Pulsar takes the first CN
    for part in reversed(certificate.subject.rdns):
        for one in part.get_attributes_for_oid(NameOID.COMMON_NAME):
            if isinstance(one.value, str) and one.value:
                yield one.value
