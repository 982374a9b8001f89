"""Why there is no connection, in the system's words: without numbers and without the address, which who asks names."""

from __future__ import annotations

import os
import re
import ssl
from typing import Final

_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")


def why_failed(error: BaseException) -> str:
    """Return the text of an error, its class if it has none.

    asyncio's is "[Errno 111] Connect call failed ('127.0.0.1', 6650)", and of a host with several addresses a list of
    such texts.
    """
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):  # whose numbers are OpenSSL's
        numbers = dict.fromkeys(map(int, _NUMBER.findall(str(error))))
        if numbers and error.filename is None:
            return ", ".join(map(os.strerror, numbers))
        if error.strerror and error.filename is None:
            return error.strerror
    return str(error) or type(error).__name__
