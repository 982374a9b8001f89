"""Sizes, rates, counts and ages as people read them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_THOUSANDS: Final = ("", "k", "M", "G", "T")
_BAR: Final = "▏▎▍▌▋▊▉█"


def size_in_words(count: float) -> str:
    """Return bytes: ``1.5 MiB``; -1 is how Pulsar says that it does not know."""
    if count < 0:
        return "-"
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def count_in_words(count: float) -> str:
    """Return a count: ``950``, ``12.3k``, ``4.5M``."""
    unit = 0
    while abs(count) >= 10_000 and unit < len(_THOUSANDS) - 1:
        count, unit = count / 1000, unit + 1
    whole = float(count).is_integer()
    return (f"{count:.0f}" if whole else f"{count:.1f}") + _THOUSANDS[unit]


def rate_in_words(rate: float, unit: str = "msg") -> str:
    """Return a rate by second: ``120 msg/s``, ``1.2 MiB/s``."""
    return f"{size_in_words(rate)}/s" if unit == "B" else f"{count_in_words(round(rate, 1))} {unit}/s"


def age_in_words(seconds: float) -> str:
    """Return a duration by its two largest units: ``3d 4h``, ``12s``."""
    if seconds < 0:
        return "-"
    parts: list[str] = []
    left = int(seconds)
    for name, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or (parts and len(parts) < 2):
            parts.append(f"{count}{name}")
        if len(parts) == 2:
            break
    return " ".join(parts) or "0s"


def bar(value: float, largest: float, width: int = 10) -> str:
    """Return a bar of at most ``width`` characters; anything above nothing is seen."""
    if value <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(width * 8 * min(value / largest, 1)))
    full, rest = divmod(eighths, 8)
    return _BAR[-1] * full + (_BAR[rest - 1] if rest else "")
