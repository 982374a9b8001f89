"""Patterns for topic names, as clients send them: compiled by RE2, so that a stranger's pattern costs linear time.

The pattern is matched against a name without its scheme and without ``-partition-<n>``, as a whole (rule 2.17).
Clients write the scheme before the pattern or after an anchor (Java: ``^persistent://tenant/ns/.*$``), a group or a
quotation; wherever it stands, it is taken out, what was before it stays.

Apache Pulsar's broker compiles by RE2/J, whose dialect this is. What RE2 has not (looking around, back references,
possessive repetition) and what would take more than :data:`MEMORY_MAX` is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from magnetar.model.errors import InvalidTopicNameError, UnsupportedPatternError
from magnetar.model.names import PARTITION_SUFFIX

LENGTH_MAX: Final = 10_000
"""Characters; what settings allow beyond that is refused all the same."""
MEMORY_MAX: Final = 128 << 10
"""Bytes for one compiled pattern: it bounds the time to compile it, too."""
_WORK_PER_STEP: Final = 500_000
"""Instructions times bytes: some milliseconds at the slowest."""
_SEPARATOR: Final = "://"
_DOMAINS: Final = ("non-persistent", "persistent")
_ONLY_ELSEWHERE: Final = (
    *("invalid perl operator", "invalid escape sequence", "bad repetition operator"),
    *("invalid repetition size", "pattern too large"),
)
"""How RE2 names what Java's own engine has (looking around, back references, ``*+``), and what is too much for us."""


class TopicPattern:
    """One pattern. Immutable; compare by text."""

    __slots__ = ("_fullmatch", "_size", "text")

    def __init__(self, text: str) -> None:
        """Raises InvalidTopicNameError, which says why; UnsupportedPatternError for what others may take."""
        if len(text) > LENGTH_MAX:
            raise UnsupportedPatternError(f"Invalid topics pattern: {len(text)} characters; at most {LENGTH_MAX} are")
        self.text = text
        found = compiled(without_scheme(text), text)
        self._fullmatch = found.fullmatch
        self._size: int = max(found.programsize, 1)

    def matches(self, name: str) -> bool:
        """Whether the topic of this full name is meant; a partition is, if its topic is."""
        return self._fullmatch(pattern_subject(name)) is not None

    def chosen(self, names: Iterable[str]) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield those of ``names`` that match, in their order, in pieces: each is a few milliseconds' work at most.

        With each piece comes what it cost, as the number of names that an ordinary pattern looks at meanwhile.
        Partitions of one topic that follow each other are one question.
        """
        names = iter(names)
        fullmatch, asked, answer = self._fullmatch, "", False
        step, each = self._step, max(1, self._size // 100)
        while taken := list(islice(names, step)):
            found = []
            for name in taken:
                subject = pattern_subject(name)
                if subject != asked:
                    asked, answer = subject, fullmatch(subject) is not None
                if answer:
                    found.append(name)
            yield len(taken) * each, found

    @property
    def _step(self) -> int:
        """Return the number of names per piece: few for a large pattern. A name of ours has some fifty bytes."""
        return max(1, min(500, _WORK_PER_STEP // (self._size * 50)))


def pattern_subject(name: str) -> str:
    """Return the part of a topic's name that patterns are matched against."""
    start = name.find(_SEPARATOR) + len(_SEPARATOR)
    if PARTITION_SUFFIX in name:
        base, _, number = name.rpartition(PARTITION_SUFFIX)
        if number.isdecimal():
            return base[start:]
    return name[start:]


def without_scheme(pattern: str) -> str:
    """Without ``persistent://`` or ``non-persistent://`` wherever it stands. Raises InvalidTopicNameError.

    What follows a second ``://`` does not count, as in Apache Pulsar.
    """
    prefix, separator, rest = pattern.partition(_SEPARATOR)
    if not separator:
        return pattern
    for domain in _DOMAINS:
        if prefix.endswith(domain):
            return prefix.removesuffix(domain) + rest.partition(_SEPARATOR)[0]
    raise InvalidTopicNameError(f"Invalid topics pattern: Does not support topic domain: {prefix}")


def compiled(expression: str, text: str) -> Any:
    """A regular expression of RE2; ``text``: as it was sent. Raises InvalidTopicNameError, UnsupportedPatternError."""
    import re2  # three megabytes that most brokers and programs never need

    options = re2.Options()
    options.max_mem = MEMORY_MAX
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(expression, options)
    except UnicodeEncodeError:
        raise InvalidTopicNameError("Invalid topics pattern: it holds half of a surrogate pair") from None
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        kind = UnsupportedPatternError if said.startswith(_ONLY_ELSEWHERE) else InvalidTopicNameError
        raise kind(f"Invalid topics pattern: {text}: {said}") from None
    finally:
        re2.purge()  # its own cache would keep the last 128 that strangers sent
