"""One setting: its default, what it means, and which values are accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """Description and bounds of one setting, for the documentation and the loader."""

    doc: str
    group: str
    low: int | None = None
    high: int | None = None
    members: tuple[str, ...] = ()
    """The words that a list separated by commas may hold."""
    effect: bool = True
    """Whether it does anything; a setting without effect is accepted and shown, but not listed."""
    form: str = ""
    """The pattern of a text: one of :data:`magnetar.config.configuration.FORMS`."""
    secret: bool = False
    """Whether the value is never shown: not in errors, not by ``magnetar config``, not over REST."""
    off: bool = False
    """Whether an empty value switches it off; other settings stay as they were."""


def setting(
    default: T,
    doc: str,
    group: str,
    low: int | None = None,
    high: int | None = None,
    members: tuple[str, ...] = (),
    *,
    effect: bool = True,
    form: str = "",
    secret: bool = False,
    off: bool = False,
) -> T:
    """A field of a settings class; a secret one is left out of its ``repr``."""
    info = SettingInfo(doc, group, low, high, members, effect, form, secret, off)
    return field(default=default, repr=not secret, metadata={"about": info})
