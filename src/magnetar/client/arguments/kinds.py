"""Kinds of arguments that many parameters share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, Final

from magnetar.client.arguments.expected_argument import ExpectedArgument
from magnetar.model.errors import InvalidValueError

INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
NAME_CHARACTERS: Final = 4_096
"""Of names that brokers keep: subscriptions, consumers, producers."""
PROPERTY_CHARACTERS: Final = 65_536
"""Of all properties of a producer, consumer or subscription together, as magnetar's broker takes them."""
SECONDS_MAX: Final = 10 * 365 * 24 * 3_600
"""Ten years: the longest time that is taken anywhere; a bound against overflow."""


def is_text(given: object) -> bool:
    """Whether it is a str that can be sent: without halves of surrogate pairs."""
    if not isinstance(given, str):
        return False
    if not given.isascii():
        given.encode()  # raises UnicodeEncodeError
    return True


def whole(low: int, high: int, unit: str = "") -> ExpectedArgument:
    """Return the kind of whole numbers in a range, both ends included."""
    words = f"a whole number{' of ' + unit if unit else ''} from {low:,} to {_bound(high)}"
    return ExpectedArgument(words, lambda given: _is_whole(given) and low <= given <= high)


def number(low: float, high: float, unit: str, *, above: bool = False) -> ExpectedArgument:
    """Return the kind of numbers in a range; ``above``: without its lower end."""
    words = f"a number of {unit} {'above' if above else 'from'} {low:g} {'and up to' if above else 'to'} {high:,.0f}"
    return ExpectedArgument(
        words,
        lambda given: _is_number(given) and (low < given if above else low <= given) and given <= high,
    )


def text(what: str, most: int = NAME_CHARACTERS, *, empty: bool = False) -> ExpectedArgument:
    """Return the kind of texts up to ``most`` characters."""

    def fits(given: Any) -> bool:
        if isinstance(given, str) and len(given) > most:
            raise InvalidValueError(f"it has {len(given):,} characters, and {most:,} are taken")
        return is_text(given) and (empty or bool(given))

    return ExpectedArgument(what, fits)


def one_of(kind: type[Enum], where: str) -> ExpectedArgument:
    """Return the kind of an enumeration's members; of an IntEnum their numbers are taken, too."""
    names = ", ".join(f"{where}.{one.name}" for one in kind)
    values = {one.value for one in kind} if issubclass(kind, int) else set()
    return ExpectedArgument(
        f"one of {names}",
        lambda given: isinstance(given, kind) or (_is_whole(given) and given in values),
    )


def instance(what: str, *kinds: type) -> ExpectedArgument:
    """Return the kind of objects of some classes."""
    return ExpectedArgument(what, lambda given: isinstance(given, kinds))


def function(what: str) -> ExpectedArgument:
    """Return the kind of what can be called."""
    return ExpectedArgument(what, callable)


def sequence(what: str, fits: Callable[[Any], bool]) -> ExpectedArgument:
    """Return the kind of sequences, not of characters or bytes, all members of which fit."""
    return ExpectedArgument(what, lambda given: is_sequence(given) and all(fits(one) for one in given))


def is_sequence(given: object) -> bool:
    """Whether it is a list, a tuple or their like, and not a text."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray | memoryview)


def properties(most: int | None = None) -> ExpectedArgument:
    """Return the kind of mappings of texts to texts, of up to ``most`` characters together."""

    def fits(given: Any) -> bool:
        if not isinstance(given, Mapping):
            return False
        size = 0
        for name, value in given.items():
            if not (is_text(name) and is_text(value)):
                raise InvalidValueError(f"{name!r:.60} and its value are not both text")
            size += len(name) + len(value)
        if most is not None and size > most:
            raise InvalidValueError(f"it has {size:,} characters, and {most:,} are taken")
        return True

    return ExpectedArgument("a mapping of texts to texts", fits)


def is_duration(given: object) -> bool:
    """Whether it is a timedelta, or a number of milliseconds, not endless; up to ten years."""
    if isinstance(given, timedelta):
        return given.total_seconds() <= SECONDS_MAX
    return _is_number(given) and -math.inf < given <= SECONDS_MAX * 1_000  # type: ignore[operator]  # a number


TRUTH: Final = ExpectedArgument("True or False", lambda given: isinstance(given, bool))


def _is_whole(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and not math.isnan(given)


def _bound(high: int) -> str:
    return {INT32_MAX: "2^31 - 1", INT64_MAX: "2^63 - 1"}.get(high, f"{high:,}")
