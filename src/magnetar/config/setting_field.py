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
) -> T:
    """A field of a settings class."""
    return field(default=default, metadata={"about": SettingInfo(doc, group, low, high, members, effect, form)})
