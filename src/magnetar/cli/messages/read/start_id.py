"""The place where a reader begins, as ``pulsar-client read -m`` writes it."""

from __future__ import annotations

import re

from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError


def start_id(text: str) -> MessageId:
    """Parse latest, earliest or LEDGER:ENTRY. Raises InvalidValueError."""
    if text in ("latest", "earliest"):
        return MessageId.latest if text == "latest" else MessageId.earliest
    found = re.fullmatch(r"(-?[1-9][0-9]{0,18}|0):(-?[1-9][0-9]{0,18}|0)", text)
    if found is None or not all(-1 <= int(number) < 1 << 63 for number in found.groups()):
        raise InvalidValueError("Message ID must be 'latest', 'earliest' or '<ledgerId>:<entryId>'")
    return MessageId(-1, int(found[1]), int(found[2]))
