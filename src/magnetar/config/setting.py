"""One setting: its default, what it means, and which values are accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeVar

T = TypeVar("T")

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """What the documentation and the loader know of one setting."""

    doc: str
    group: str
    low: int | None = None
    high: int | None = None
    members: tuple[str, ...] = ()
    """For a list of words separated by commas: those there are."""
    effect: bool = True
    """Whether it does anything; what does not is taken and shown, but listed nowhere."""
    form: str = ""
    """What a text must look like: one of :data:`magnetar.config.configuration.FORMS`."""


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
