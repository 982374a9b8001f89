"""The options that were given, in any case, with look-ups that check what they find.

Which keys there are is the caller's knowledge: it says what is wrong with a key, before anything is looked up,
because a misspelt option that is ignored reads or writes the wrong thing silently. `unknown` is the usual complaint.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from magnetar.model.errors import InvalidValueError

_NUMBER_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = 1000
"""Python refuses to read numbers of more than some thousand digits."""


class OptionTable:
    """Look-ups by title, as people write it; a value of blanks is as good as none.

    ``fault`` says what is wrong with a key (as it was given), or None. All look-ups, and the making of the table, raise
    InvalidValueError.
    """

    def __init__(self, given: Mapping[str, str], fault: Callable[[str], str | None]) -> None:
        self._values = {key.lower(): value for key, value in given.items()}
        for key in given:
            wrong = fault(key)
            if wrong is not None:
                raise InvalidValueError(wrong)

    def get(self, title: str) -> str | None:
        value = self._values.get(title.lower())
        return value.strip() if value and value.strip() else None

    def choice(self, title: str, choices: tuple[str, ...], default: str) -> str:
        """Return one of the choices, written as they are, whatever the case of what was given."""
        value = self.get(title)
        if value is None:
            return default
        for choice in choices:
            if value.lower() == choice.lower():
                return choice
        raise InvalidValueError(f"option {title!r} is {value!r}; it can be {', '.join(choices)}")

    def flag(self, title: str, default: bool) -> bool:
        return self.choice(title, ("true", "false"), str(default).lower()) == "true"

    def number(self, title: str, default: int, least: int) -> int:
        value = self.get(title)
        if value is None:
            return default
        # Digits of other scripts are decimal, too, and Java counts in 64 bits.
        digits = value.isascii() and value.isdecimal() and len(value) <= _DIGITS_MAX
        if not digits or not least <= int(value) <= _NUMBER_MAX:
            raise InvalidValueError(
                f"option {title!r} is {value!r}; it must be a number from {least} on"
                + (f", and {_NUMBER_MAX} at most" if value.isdecimal() and value.isascii() else "")
            )
        return int(value)

    def application(self) -> tuple[str, int] | None:
        """Return txnAppId and txnVersion: the writing application, and which of its writes this is."""
        name, version = self.get("txnAppId"), self.get("txnVersion")
        if (name is None) != (version is None):
            raise InvalidValueError("the options 'txnAppId' and 'txnVersion' belong together: give both or none")
        return None if name is None else (name, self.number("txnVersion", 0, 0))

    def prefixed(self, prefix: str) -> dict[str, str]:
        """Return the options whose keys begin with ``prefix`` (in lower case), by what follows; values as they were
        given."""
        return {key[len(prefix) :]: value for key, value in self._values.items() if key.startswith(prefix)}


def unknown(key: str, titles: Iterable[str], known: Callable[[str], str]) -> str:
    """Return the complaint about a key, with the nearest of the titles, or else what ``known`` makes of their list."""
    by_key = {title.lower(): title for title in titles}
    near = difflib.get_close_matches(key.lower(), by_key, 1, 0.6)
    hint = f"did you mean {by_key[near[0]]!r}?" if near else known(", ".join(sorted(by_key.values())))
    return f"option {key!r} is not known; {hint}"
