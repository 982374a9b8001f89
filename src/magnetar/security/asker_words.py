"""How those who connect name what they give: Python's parameters have other names than Pulsar's tools have."""

from __future__ import annotations

from typing import Final, NamedTuple


class AskerWords(NamedTuple):
    """What errors name to a user who has to give something."""

    login: str
    """Credentials."""
    trust: str
    """The file of authorities."""
    certificate: str
    """A certificate of the client's own."""


TOOL_WORDS: Final = AskerWords(
    login="authPlugin and authParams, or a token by reference (docs/security.md)",
    trust="tlsTrustCertsFilePath",
    certificate="authPlugin AuthenticationTls with tlsCertFile and tlsKeyFile in authParams",
)
"""Of command lines, options of Spark, pipelines and `ClientLogin`."""
PYTHON_WORDS: Final = AskerWords(
    login="authentication=AuthenticationToken(...), or another one of docs/client.md",
    trust="tls_trust_certs_file_path",
    certificate="authentication=AuthenticationTLS(certificate_path, private_key_path)",
)
"""Of the client's own parameters."""
