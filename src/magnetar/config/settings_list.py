"""The output of ``magnetar config``: every setting with an effect, its value, its origin, and Pulsar's default.

One line per setting: ``name = value``, then, after a ``#``, where the value comes from if it is no default, and
Apache Pulsar's default where magnetar's is another. Without the notices the output is a properties file
that can be read again; of a secret it says only that it is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from magnetar.config.configuration import Configuration, about, is_secret, pulsar_settings
from magnetar.config.properties import words
from magnetar.config.setting_effects import EffectKind, all_effects
from magnetar.config.settings_page import by_group


def settings_list(configuration: Configuration, *, changed_only: bool = False) -> Iterator[str]:
    """Yield the lines, by group."""
    for group, fields in by_group().items():
        lines = []
        for field in fields:
            if changed_only and field.name not in configuration.origin:
                continue
            value = getattr(configuration.settings, field.name)
            if value and is_secret(field.name):
                lines.append(f"# {field.name} is set, from {configuration.origin.get(field.name)}, and not shown")
                continue
            said = _said(field.name, field.default, configuration.origin.get(field.name))
            lines.append(f"{field.name}={_text(value)}" + (f"  # {'; '.join(said)}" if said else ""))
        if lines:
            yield f"# {group}"
            yield from lines
            yield ""


def others_list() -> Iterator[str]:
    """Yield a line for each setting of Apache Pulsar that has no effect here, and why."""
    words = {
        EffectKind.NOT_APPLICABLE: "not applicable",
        EffectKind.NOT_BUILT: "not built",
        EffectKind.REFUSED: "refused",
    }
    for name, effect in sorted(all_effects().items()):
        if effect.kind in words:
            yield f"{name}: {words[effect.kind]}: {effect.reason}"


def _said(name: str, default: Any, origin: str | None) -> list[str]:
    said = []
    if origin is not None:
        said.append(f"from {origin}, default {_text(default) or 'empty'}")
    known = pulsar_settings().get(name)
    if known is not None and not _same(name, known.default, default):
        said.append(f"Pulsar's default {known.default or 'empty'}")
    return said


def _same(name: str, theirs: str, ours: Any) -> bool:
    text = _text(ours)
    if about(name).members:
        return set(words(theirs)) == set(words(text))
    return theirs.removeprefix("(null)") == text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
