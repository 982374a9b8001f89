"""The asyncio client under the official client's name for it: ``from magnetar.asyncio import Client``.

It is `magnetar.aio`, in which everything is written; the module has another name there because asyncio itself has this
one.
"""

from __future__ import annotations

from magnetar.aio import *  # noqa: F403 - the same names
from magnetar.exceptions import PulsarException as PulsarException
