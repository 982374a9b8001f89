"""One JSON document, read strictly: values that could not be stored, shown or sent on are refused.

UTF-8 only; no lone surrogates, whether escaped or not; no NaN, Infinity or number beyond 64 bits; no member twice; at
most ``LEVELS_MAX`` levels and ``VALUES_MAX`` values. Errors name the place inside the document.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, Final, NoReturn

from magnetar.config.setting_field import LONG_MAX
from magnetar.model.errors import InvalidValueError
from magnetar.model.policies import Json

LEVELS_MAX: Final = 100
VALUES_MAX: Final = 100_000
"""Values of one document: parsing takes a microsecond for each, and what is done with them takes more."""
_STRINGS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_DIGITS_MAX: Final = 20
_SHOWN: Final = 80


def read_document(body: bytes, values_max: int = VALUES_MAX) -> Json:
    """Parse a document. Raises InvalidValueError."""
    try:
        text = body.decode("utf-8")
        if text.count(",") >= values_max and _STRINGS.sub("", text).count(",") >= values_max:
            raise ValueError(f"it has more than {values_max} values")
        value: Json = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"the body is not JSON: {_said(error)}") from None
    _check(value, may_be_surrogate="\\u" in text)
    return value


def excerpt(value: object) -> str:
    """The beginning of a value as JSON, for an error's text."""
    if isinstance(value, str):
        value = value[: _SHOWN + 1]
    return json.dumps(value)[:_SHOWN]


def _said(error: Exception) -> str:
    return "too many levels" if isinstance(error, RecursionError) else str(error)[:200]


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _whole(digits: str) -> int:
    if len(digits) <= _DIGITS_MAX and -LONG_MAX - 1 <= (number := int(digits)) <= LONG_MAX:
        return number
    raise ValueError(f"{digits[:_DIGITS_MAX]}... is beyond 64 bits")


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:_DIGITS_MAX]} is too large a number")
    return number


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # one pass: a document may have as many members as it has room for
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name in found if counts[name] > 1)
        raise ValueError(f"member {excerpt(twice)} comes twice")
    return found


_DECODER: Final = json.JSONDecoder(
    parse_constant=_constant, parse_int=_whole, parse_float=_number, object_pairs_hook=_members
)


def _check(document: Json, *, may_be_surrogate: bool) -> None:
    """Check levels and surrogates, in a loop instead of a recursion because the levels are not bounded yet."""
    waiting: list[tuple[Json, str, int]] = [(document, "", 1)]
    while waiting:
        value, place, level = waiting.pop()
        if level > LEVELS_MAX or (level == LEVELS_MAX and value and isinstance(value, dict | list)):
            raise InvalidValueError(f"the body is not JSON that is accepted: more than {LEVELS_MAX} levels")
        if isinstance(value, dict):
            for name, item in value.items():
                if may_be_surrogate:
                    _require_characters(name, f"the name of a member{_in(place)}")
                # most values are neither: no place is made up for them
                if may_be_surrogate or isinstance(item, dict | list):
                    waiting.append((item, f"{place}.{name}" if place else name, level + 1))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if may_be_surrogate or isinstance(item, dict | list):
                    waiting.append((item, f"{place}[{index}]", level + 1))
        elif may_be_surrogate and isinstance(value, str):
            _require_characters(value, f"the text{_in(place)}")


def _in(place: str) -> str:
    return f" of {place[:_SHOWN]!r}" if place else ""


def _require_characters(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(
            f"{what} has a lone surrogate, \\u{ord(text[error.start]):04x}, which is no character"
        ) from None
