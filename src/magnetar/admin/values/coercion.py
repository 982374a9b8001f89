"""Coercion of JSON values to the expected type, as Apache Pulsar's parser does it (rule 11.1.4).

A number may come in quotes or as ``3.0`` (Pulsar truncates other fractions, magnetar refuses them); a flag may come in
quotes or as a number; a text may come as a number or a flag. Everything else is refused with a text that names what was
expected and what was found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from magnetar.admin.values.json_document import excerpt
from magnetar.config.setting_field import INT_MAX, LONG_MAX
from magnetar.model.errors import InvalidValueError, PreconditionFailedError
from magnetar.model.own_properties import refusal
from magnetar.model.policies import Json

_QUOTED: Final = re.compile(r"[-+]?[0-9]{1,19}", re.ASCII)
DELAY_MS_MAX: Final = timedelta.max // timedelta(milliseconds=1)
"""The longest delay of a message, in milliseconds: some 2.7 million years."""
_FLAGS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def number(value: Json, what: str = "a whole number", *, least: int | None = None, most: int = LONG_MAX) -> int:
    """A whole number in the range of a Java ``long``, or up to ``most``; from ``least`` on, or as far below 0."""
    found: int | None = None
    quoted = isinstance(value, str) and _QUOTED.fullmatch(value.strip())
    if quoted or (isinstance(value, float) and value.is_integer()):
        found = int(value)  # type: ignore[arg-type]  # a text or a float by now
    elif isinstance(value, int) and not isinstance(value, bool):
        found = value
    if found is None:
        raise InvalidValueError(f"expected {what} as a JSON number, got {excerpt(value)}")
    least = -most - 1 if least is None else least
    if not least <= found <= most:
        raise InvalidValueError(f"expected {what} from {least} to {most}, got {found}")
    return found


def small_number(value: Json, what: str = "a whole number") -> int:
    """A whole number in the range of a Java ``int``."""
    return number(value, what, most=INT_MAX)


def fraction(value: Json, what: str = "a number") -> float:
    """A number of any kind."""
    if isinstance(value, str):
        try:
            return float(number(value, what))
        except InvalidValueError:
            raise InvalidValueError(f"expected {what} as a JSON number, got {excerpt(value)}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValueError(f"expected {what} as a JSON number, got {excerpt(value)}")
    return float(value)


def flag(value: Json, what: str = "true or false") -> bool:
    """A flag."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value in _FLAGS:
        return _FLAGS[value]
    raise InvalidValueError(f"expected {what}, got {excerpt(value)}")


def text(value: Json, what: str = "a text") -> str:
    """A text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    raise InvalidValueError(f"expected {what}, got {excerpt(value)}")


def texts(value: Json, what: str = "a JSON object whose values are all texts") -> dict[str, str]:
    """An object of texts; a null member is left out, and null is an empty object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidValueError(f"expected {what}, got {excerpt(value)}")
    return {name: text(item, f"a text as {excerpt(name)}") for name, item in value.items() if item is not None}


def require_users(properties: Mapping[str, str], own: tuple[str, ...], most: int) -> None:
    """Check properties that a user sets; names that begin as ``own`` says are the broker's.

    Raises InvalidValueError, or PreconditionFailedError above ``most`` characters in all.
    """
    if refused := refusal(properties, own):
        raise InvalidValueError(refused)
    size = sum(len(name) + len(value) for name, value in properties.items())
    if size > most:
        raise PreconditionFailedError(f"the properties have {size} characters, at most {most} are allowed: remove some")
