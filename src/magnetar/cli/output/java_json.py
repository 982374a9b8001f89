"""JSON as Apache Pulsar's command lines print it: the indentation of Jackson, and numbers as Java writes them."""

from __future__ import annotations

import json
import math
from typing import Any


def pretty(value: Any, indent: int = 0) -> str:
    """Return indented JSON: members on lines of their own, arrays on one line."""
    if isinstance(value, dict):
        if not value:
            return "{ }"
        inner = "  " * (indent + 1)
        members = [f"{inner}{_text(str(key))} : {pretty(one, indent + 1)}" for key, one in value.items()]
        return "{\n" + ",\n".join(members) + "\n" + "  " * indent + "}"
    if isinstance(value, list):
        return "[ " + ", ".join(pretty(one, indent) for one in value) + " ]" if value else "[ ]"
    return scalar(value)


def scalar(value: Any) -> str:
    """Return a value that is neither an object nor an array."""
    if isinstance(value, float):
        return double(value)
    return _text(value) if isinstance(value, str) else json.dumps(value)


def double(value: float) -> str:
    """Return a number as Java writes it."""
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        found = repr(value)
        return found if "e" not in found else f"{value:f}".rstrip("0")
    sign = "-" if value < 0 else ""
    digits, exponent = _scientific(abs(value))
    return f"{sign}{digits}E{exponent}"


def _scientific(value: float) -> tuple[str, str]:
    digits, _, power = repr(value).partition("e")
    whole, _, fraction = digits.partition(".")
    exponent = int(power or 0)
    figures = (whole + fraction).lstrip("0")
    exponent += len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    figures = figures.rstrip("0") or "0"
    return f"{figures[0]}.{figures[1:] or '0'}", str(exponent)


def java_text(value: Any) -> str:
    """Return a value as Java shows a parsed answer: ``[a, b]``, ``{a=b}``."""
    if isinstance(value, list):
        return "[" + ", ".join(java_text(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={java_text(one)}" for key, one in value.items()) + "}"
    return value if isinstance(value, str) else scalar(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
