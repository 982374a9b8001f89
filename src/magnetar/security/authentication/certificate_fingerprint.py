"""The digests by which a client's certificate can be revoked.

An ECDSA signature can be written in two ways, (r, s) and (r, n - s), and both verify: the holder of a certificate can
make another of it, whose digest is in no list. So the digest of that one counts as well.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

_ORDERS: Final = (
    0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
    (1 << 521) - 0x5AE79787C40D069948033FEB708F65A2FC44A36477663B851449048E16EC79BF7,
)
"""The orders n of P-256, P-384 and P-521; a certificate does not say on which of them its authority signs."""
_BIT_STRING: Final = 0x03
_SEQUENCE: Final = 0x30


def fingerprint(data: bytes) -> str:
    """The SHA-256 of a certificate in DER, in hexadecimal, as ``openssl x509 -fingerprint -sha256`` shows it."""
    return sha256(data).hexdigest()


def other_fingerprints(certificate: x509.Certificate, data: bytes) -> frozenset[str]:
    """Those of ``certificate`` (``data`` in DER) with its signature written in the other way; none but for ECDSA."""
    if not isinstance(certificate.signature_algorithm_parameters, ec.ECDSA):
        return frozenset()
    signature = certificate.signature
    r, s = decode_dss_signature(signature)
    # version, names, key and algorithm: what stands before the signature
    before = _content(data)[: -len(_encoded(_BIT_STRING, b"\0" + signature))]
    others = (encode_dss_signature(r, order - s) for order in _ORDERS if order > s)
    return frozenset(
        fingerprint(_encoded(_SEQUENCE, before + _encoded(_BIT_STRING, b"\0" + other))) for other in others
    )


def _content(data: bytes) -> bytes:
    size = data[1]
    return data[2 + (size & 0x7F if size & 0x80 else 0) :]


def _encoded(tag: int, content: bytes) -> bytes:
    """One value in DER."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
