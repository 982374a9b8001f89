"""A client of TLS 1.3 that changes its keys as often as asked, with the records kept for the test to send."""

from __future__ import annotations

import _ssl
import ctypes
import ssl
from typing import Any, cast


class KeyChangingClient:
    """The client's side of one connection over buffers in memory."""

    def __init__(self, context: ssl.SSLContext, name: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl: Any = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        # the library that the module ssl is linked to, and the SSL* that its object holds behind head, socket
        self._library = ctypes.CDLL(_ssl.__file__)
        self._pointer = ctypes.c_void_p.from_address(id(cast(Any, self._ssl)._sslobj) + object.__basicsize__ + 8)
        self._library.SSL_version.argtypes = [ctypes.c_void_p]
        self._library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._library.SSL_do_handshake.argtypes = [ctypes.c_void_p]

    def shake(self, received: bytes) -> bool:
        """Take a step of the handshake; returns whether it is finished."""
        self._incoming.write(received)
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            return False
        assert self._library.SSL_version(self._pointer) == 0x0304
        return True

    def taken(self) -> bytes:
        """What there is to be sent."""
        return self._outgoing.read()

    def change_keys(self, times: int, *, answered: bool) -> None:
        """Write records that change the keys; ``answered``: the other side has to change its own, too."""
        for _ in range(times):
            assert self._library.SSL_key_update(self._pointer, int(answered)) == 1
            assert self._library.SSL_do_handshake(self._pointer) == 1

    def write(self, data: bytes) -> None:
        """Encrypt ``data``."""
        self._ssl.write(data)

    def read(self, received: bytes) -> bytes:
        """Decrypt what came."""
        self._incoming.write(received)
        found = b""
        try:
            while True:
                found += self._ssl.read(1 << 14)
        except ssl.SSLWantReadError:
            return found
