"""``docs/settings.md``, made from the descriptions in :mod:`magnetar.config.settings`.

``python -m magnetar.config.settings_page > docs/settings.md`` renews it; a test compares.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Final, Literal, get_args, get_origin

from magnetar.config.configuration import about, has_effect, pulsar_settings, setting_types
from magnetar.config.dynamic_settings import is_effective
from magnetar.config.policy_settings import PolicySettings
from magnetar.config.protection import PROTECTIONS, Protection
from magnetar.config.setting_effects import EffectKind, all_effects
from magnetar.config.settings import Settings

_HEAD: Final = """\
# Settings

<!-- generated: python -m magnetar.config.settings_page > docs/settings.md -->

Names, types and defaults are Apache Pulsar's own; where a default differs, the description says so. Later sources
win: the defaults below, a properties file (Pulsar's `broker.conf` or `standalone.conf` unchanged), the environment
(`PULSAR_PREFIX_<name>` or `<name>`), flags (`--set name=value`). An empty value leaves a setting as it was; a port that
is empty is not opened.

`magnetar config` lists them with their values and where those come from.

Only the settings listed here have an effect; each of Pulsar's has a test that was seen to fail while the setting was
held at its default (`tools/coverage/seen_settings.tsv`). All other names that Apache Pulsar 4.0.8 knows stand at the
end of this page, each with the reason; they are accepted with a notice at start-up, but for those that protect: the
start is refused until they can be honoured. Any other name is refused, with the nearest known one.

Settings marked *dynamic* can be changed while the broker runs, without a restart: `POST
/admin/v2/brokers/configuration/<name>/<value>` (`magnetar admin brokers update-dynamic-config`). Such a change is kept,
is stronger than the file also after a restart, and ends with `DELETE` of the same path.
"""

_TAIL: Final = """
## Refused until they work

Ignoring a setting that protects would open what the user closed, and one that proxies, clients or scripts rely on would
fail later and elsewhere. The start is refused, with the place it was
written at and what to do, unless the value is one that does nothing. So is a change while the broker runs.
`managedLedgerOffloadDriver` needs `offloadUrl` beside it.

| name | accepted |
|---|---|
"""

_OTHERS: Final = """
## Without an effect

What these settings of Apache Pulsar steer does not exist in this broker, or is not built. Those about several brokers
and geo-replication can be set while the broker runs; the values are kept and shown, for scripts that set them.

| what they steer | names |
|---|---|
"""


def settings_page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for group, fields in by_group().items():
        parts.append(
            f"\n## {group}\n\n| name | accepts | default | Pulsar's default | meaning |\n|---|---|---|---|---|\n"
        )
        parts.extend(_row(field.name, field.default) for field in fields)
    refused = {name: found for name, found in PROTECTIONS.items() if not has_effect(name)}
    parts.append(_TAIL)
    parts.extend(f"| `{name}` | {_harmless(found)} |\n" for name, found in sorted(refused.items()))
    parts.append(_OTHERS)
    rows: dict[str, list[str]] = {}
    for name, effect in sorted(all_effects().items()):
        if effect.kind in (EffectKind.NOT_APPLICABLE, EffectKind.NOT_BUILT):
            later = "not built: " if effect.kind is EffectKind.NOT_BUILT else ""
            rows.setdefault(later + effect.reason, []).append(f"`{name}`")
    parts.extend(f"| {reason} | {', '.join(names)} |\n" for reason, names in sorted(rows.items()))
    return "".join(parts)


def _harmless(found: Protection) -> str:
    if found.from_value is not None:
        return f"{found.from_value:g} and more"
    return ", ".join(found.off) or "empty"


def by_group() -> dict[str, list[dataclasses.Field[Any]]]:
    """All settings with an effect by their groups; those that policies override come last."""
    groups: dict[str, list[dataclasses.Field[Any]]] = {}
    fields = dataclasses.fields(Settings)
    for field in sorted(fields, key=lambda field: _place(field.name)):
        if about(field.name).effect:
            groups.setdefault(about(field.name).group, []).append(field)
    return groups


def _place(name: str) -> int:
    return 2 if name in PolicySettings.__dataclass_fields__ else int(name not in Settings.__annotations__)


def _row(name: str, default: Any) -> str:
    known = pulsar_settings().get(name)
    ours = about(name).doc.startswith("magnetar's own")
    dynamic = " *Dynamic.*" if is_effective(name) else ""
    pulsars = _value(known.default) if known else "(ours)" if ours else "(BookKeeper's)"
    return f"| `{name}` | {_accepts(name)} | {_value(default)} | {pulsars} | {about(name).doc}{dynamic} |\n"


def _value(value: Any) -> str:
    if value is None or value == "":
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _accepts(name: str) -> str:
    kind, limits = setting_types()[name], about(name)
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if kind is bool:
        return "true, false"
    if kind is str:
        return "some of " + ", ".join(limits.members) if limits.members else "text"
    return f"{limits.low} to {limits.high}" + (", empty: none" if limits.off else "")


if __name__ == "__main__":
    sys.stdout.write(settings_page())
