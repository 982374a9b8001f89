"""What becomes of each of Apache Pulsar's settings here: it has an effect, or there is a reason why not.

``other_settings.tsv`` gives the reason for every setting without an effect. ``none``: what it steers does not exist in
this broker. ``later``: it could have an effect and is not built. Those that protect are refused at the start
(:mod:`magnetar.config.protection`).
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from magnetar.config.configuration import has_effect, pulsar_settings
from magnetar.config.protection import PROTECTIONS

SEVERAL_BROKERS: Final = "several brokers"
"""How the reasons begin of settings that steer how topics are spread over brokers."""
GEO_REPLICATION: Final = "geo-replication"


class EffectKind(StrEnum):
    """Whether a setting does anything here."""

    EFFECTIVE = "effective"
    REFUSED = "refused"
    """Without an effect, and the start is refused where it would protect."""
    NOT_BUILT = "later"
    NOT_APPLICABLE = "none"


class SettingEffect(NamedTuple):
    """What becomes of one setting; ``reason`` is empty for an effective one."""

    kind: EffectKind
    reason: str


@cache
def reasons() -> dict[str, tuple[str, str]]:
    """``none`` or ``later``, and the reason, by the names of settings without an effect."""
    text = files("magnetar.config").joinpath("other_settings.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {name: (kind, reason) for name, kind, reason in rows}


def effect_of(name: str) -> SettingEffect:
    """What becomes of a setting of Apache Pulsar 4.0.8, or of one of our own. Raises LookupError for other names."""
    if has_effect(name):
        return SettingEffect(EffectKind.EFFECTIVE, "")
    if name in PROTECTIONS:
        found = PROTECTIONS[name]
        what = "others rely on it" if found.relied_on else "it protects"
        return SettingEffect(EffectKind.REFUSED, f"{what} and is not built. {found.instead}")
    kind, reason = reasons()[name]
    return SettingEffect(EffectKind(kind), reason)


def all_effects() -> dict[str, SettingEffect]:
    """What becomes of each setting that Apache Pulsar 4.0.8 knows."""
    return {name: effect_of(name) for name in pulsar_settings()}
