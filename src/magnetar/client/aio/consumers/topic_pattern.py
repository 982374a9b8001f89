"""Topics that a pattern matches (rule 6.8.2)."""

from __future__ import annotations

import logging
import re
from typing import Final, NamedTuple

from magnetar.model.errors import InvalidValueError
from magnetar.model.names import NamespaceName
from magnetar.model.topic_pattern import pattern_subject, without_scheme
from magnetar.protocol.commands import NamespaceMode

_LOG: Final = logging.getLogger(__name__)


class PatternTopics:
    """Those topics that one consumer has of its pattern, up to a maximum."""

    def __init__(self, pattern: str, topics_max: int | None) -> None:
        self._pattern = pattern
        self._topics_max = topics_max
        self._chosen: set[str] | None = None
        self._left_out = 0

    def choose(self, found: list[str]) -> list[str]:
        """Return those to have of what was found now: those it has already, and others while there is room.

        Raises InvalidValueError if there are too many the first time; later the rest is left out, and the log says so.
        """
        most, before = self._topics_max, self._chosen
        if most is None:
            return found
        if before is None:
            if len(found) > most:
                raise InvalidValueError(
                    f"the pattern matches {len(found)} topics, more than {most}; write a narrower one"
                )
            self._chosen = set(found)
            return found
        chosen = sorted(found, key=lambda one: one not in before)[:most]
        left_out = len(found) - len(chosen)
        if left_out != self._left_out and left_out:
            _LOG.warning(
                "%s: %d topics are left out, since a consumer has up to %d", self._pattern[:200], left_out, most
            )
        self._chosen, self._left_out = set(chosen), left_out
        return chosen


class WantedTopics(NamedTuple):
    """A namespace, and what the names of its topics are matched with."""

    namespace: str
    expression: re.Pattern[str]

    @staticmethod
    def parse(text: str) -> WantedTopics:
        """Parse ``persistent://tenant/namespace/pattern``, without its scheme, or the last part alone.

        Raises InvalidValueError.
        """
        rest = without_scheme(text).removeprefix("^")
        parts = rest.split("/", 2)
        if len(parts) == 1:
            parts = ["public", "default", rest]
        if len(parts) != 3 or not all(parts):
            raise InvalidValueError(f"{text!r} is no pattern of topics; write persistent://tenant/namespace/pattern")
        namespace = NamespaceName.parse(f"{parts[0]}/{parts[1]}").text
        try:
            expression = re.compile(f"{re.escape(namespace)}/(?:{parts[2]})")
        except re.error as error:
            raise InvalidValueError(f"{text!r} is no regular expression: {error}") from None
        return WantedTopics(namespace, expression)

    def matching(self, topics: list[str]) -> list[str]:
        """Return those of a namespace's internal topics that match without their scheme and partition."""
        return [topic for topic in topics if self.expression.fullmatch(pattern_subject(topic))]


def mode_of(text: str) -> NamespaceMode:
    """Return which topics are asked for: the official client's name of a mode."""
    modes = {
        "PersistentOnly": NamespaceMode.PERSISTENT,
        "NonPersistentOnly": NamespaceMode.NON_PERSISTENT,
        "AllTopics": NamespaceMode.ALL,
    }
    if text not in modes:
        raise InvalidValueError(f"regex_subscription_mode {text!r} is none of {', '.join(modes)}")
    return modes[text]
