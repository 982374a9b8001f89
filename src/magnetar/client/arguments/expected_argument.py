"""What one parameter takes, in words and as a test; and the error about what does not fit it."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from magnetar.client.errors import ArgumentError
from magnetar.model.errors import MagnetarError

_SHOWN: Final = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 60
_SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = _SHOWN.maxfrozenset = _SHOWN.maxdict = 3


@dataclass(frozen=True, slots=True)
class ExpectedArgument:
    """What a parameter takes."""

    what: str
    """Completes "... is expected"."""
    fits: Callable[[Any], bool]
    """May raise anything about what does not fit; a MagnetarError says why."""
    secret: bool = False
    """Whether an error shows no more than the type of what was given."""

    def check(self, name: str, given: object, where: str = "") -> None:
        """Raise ArgumentError if ``given`` does not fit; ``where`` is the call, ``name`` the parameter."""
        why = ""
        try:
            if self.fits(given):
                return
        except MagnetarError as error:
            why = f" ({error})"
        except Exception:  # whatever strange objects raise when they are looked at
            why = ""
        raise self.refusal(name, given, where, why)

    def refusal(self, name: str, given: object, where: str = "", why: str = "") -> ArgumentError:
        """Return the error about what does not fit."""
        seen = type(given).__name__ if self.secret else shown(given)
        return ArgumentError(f"{where}{': ' if where else ''}{name}: {self.what} is expected, and not {seen}{why}")

    def or_none(self) -> ExpectedArgument:
        """Return the same, or None."""
        fits = self.fits
        return ExpectedArgument(
            f"{self.what.rstrip(',')}, or None,", lambda given: given is None or fits(given), self.secret
        )


def shown(given: object) -> str:
    """Return what was given as an error shows it: short, whatever it is."""
    try:
        text = _SHOWN.repr(given)
    except Exception:
        return f"{type(given).__name__} that cannot be shown"
    if not isinstance(given, str | bytes | int | float | bool | None):
        text = f"{type(given).__name__} {text}"
    return text.encode("unicode_escape", "backslashreplace").decode() if not text.isprintable() else text


def check_all(expected: Mapping[str, ExpectedArgument], given: Mapping[str, object], where: str) -> None:
    """Check each argument that has an expectation, by the name of the call and the parameter, or of the parameter.

    Raises ArgumentError about the first one that does not fit.
    """
    for name, value in given.items():
        expectation = expected.get(f"{where}.{name}") or expected.get(name)
        if expectation is not None:
            expectation.check(name, value, where)
