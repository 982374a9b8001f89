"""Options whose value is one JSON object."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from magnetar.model.errors import InvalidValueError


def json_members(title: str, text: str) -> dict[str, Any]:
    """Return the members of the object that option ``title`` is. Raises InvalidValueError.

    A name that is there twice is refused: of what JSON readers do with it, no one can be what the user meant.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
            raise InvalidValueError(f"option {title!r} names {twice!r} twice: give all of it at once")
        return found

    try:
        given = json.loads(text, object_pairs_hook=members)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"option {title!r} is {text[:200]!r}, which is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise InvalidValueError(f"option {title!r} is {text[:200]!r}, which is no JSON object")
    return given
