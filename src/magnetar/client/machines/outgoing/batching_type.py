"""Which messages may be in one batch, with the names of the official Python client."""

from __future__ import annotations

from enum import IntEnum


class BatchingType(IntEnum):
    """Messages as they come, or of one key only: so that Key_Shared can give each batch to the consumer of its key."""

    Default = 0
    KeyBased = 1
