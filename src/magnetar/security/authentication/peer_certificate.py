"""The certificate of a peer that TLS has verified."""

from __future__ import annotations

import asyncio
import ssl


def verified_certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """The peer's certificate in DER; ``None`` without TLS, without one, and if TLS verified nothing."""
    found = transport.get_extra_info("ssl_object")
    if found is None or found.context.verify_mode == ssl.CERT_NONE:
        return None
    certificate = found.getpeercert(binary_form=True)
    return certificate if isinstance(certificate, bytes) else None
