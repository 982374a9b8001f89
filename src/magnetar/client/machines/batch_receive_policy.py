"""When a batch of messages is returned to the application (rule 6.1.4): as soon as any of three limits is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from magnetar.client.arguments import kinds
from magnetar.model.errors import InvalidValueError

BYTES_DEFAULT: Final = 10 << 20
_AT_ONCE_MS: Final = 1e-6
_NUMBER: Final = kinds.whole(-kinds.INT64_MAX, kinds.INT64_MAX)
_MILLIS: Final = kinds.number(-kinds.SECONDS_MAX, kinds.SECONDS_MAX * 1_000, "milliseconds")


@dataclass(frozen=True, slots=True)
class ConsumerBatchReceivePolicy:
    """``max_num_message`` messages, ``max_num_bytes`` of payload, or ``timeout_ms``; below 1 there is no such limit.

    Without a limit of messages and bytes there is that of 10 MB. As many as the receiver queue takes are always enough.
    """

    max_num_message: int = -1
    max_num_bytes: int = BYTES_DEFAULT
    timeout_ms: float = 100

    def __post_init__(self) -> None:
        """Raises InvalidValueError."""
        _NUMBER.check("max_num_message", self.max_num_message)
        _NUMBER.check("max_num_bytes", self.max_num_bytes)
        _MILLIS.check("timeout_ms", self.timeout_ms)
        if self.max_num_message <= 0 and self.max_num_bytes <= 0:
            if self.timeout_ms <= 0:
                raise InvalidValueError("give one at least of max_num_message, max_num_bytes and timeout_ms")
            object.__setattr__(self, "max_num_message", -1)
            object.__setattr__(self, "max_num_bytes", BYTES_DEFAULT)

    def policy(self) -> ConsumerBatchReceivePolicy:
        """Return the policy itself, which the official client has within another object."""
        return self

    @property
    def timeout(self) -> float | None:
        """Seconds; None for as long as it takes."""
        return self.timeout_ms / 1_000 if self.timeout_ms > 0 else None

    def instead(self, messages: int | None, timeout_ms: float | None) -> ConsumerBatchReceivePolicy:
        """Return the policy with another maximum of messages, or another time. Raises InvalidValueError."""
        if messages is None and timeout_ms is None:
            return self
        if messages is not None and messages < 1:
            raise InvalidValueError(f"a batch of {messages} messages is none; ask for one at least")
        wait = self.timeout_ms if timeout_ms is None else max(timeout_ms, _AT_ONCE_MS)
        return ConsumerBatchReceivePolicy(
            self.max_num_message if messages is None else messages, self.max_num_bytes, wait
        )

    def enough(self, messages: int, size: int) -> bool:
        """Whether so many messages with so many bytes are to be returned at once."""
        return 0 < self.max_num_message <= messages or 0 < self.max_num_bytes <= size

    def fits(self, messages: int, size: int) -> bool:
        """Whether so many messages with so many bytes may be returned together; one message always may."""
        if messages <= 1:
            return True
        return not (0 < self.max_num_message < messages or 0 < self.max_num_bytes < size)
