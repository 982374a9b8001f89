"""Keys of messages as they travel: text, which is base64 of a key that is no UTF-8 (rules of 3.8).

``partition_key`` of a metadata is a string of protobuf; ``partition_key_b64_encoded`` beside it says that the key is
other bytes. What says so and is no base64 is the key itself, everywhere: for Key_Shared, for the client and for
columns, whose compiled reader is `columnar.kernels.protobuf_wire.decode_base64`.
"""

from __future__ import annotations

import base64
import binascii


def key_text(key: bytes, *, base64_always: bool = False) -> tuple[str, bool]:
    """Return a key as the wire wants it, and whether that is base64: only for keys that are no UTF-8.

    ``base64_always``: for those of KEY_VALUE, SEPARATED (rule 10.13).
    """
    if not base64_always:
        try:
            return key.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(key).decode(), True


def key_of_base64(text: bytes) -> bytes:
    """Return the key whose base64 this is, or ``text`` itself if it is no padded base64 of the standard alphabet."""
    # Padding after whole groups of four passes Python's strict decoder: `00000000=` and `0000====`.
    if len(text) % 4 or text.endswith(b"==="):
        return text
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return text
