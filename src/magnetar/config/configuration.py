"""One :class:`Settings` from defaults, a properties file, the environment and flags; later sources win.

1. the defaults of :mod:`magnetar.config.settings`;
2. a file: Apache Pulsar's broker.conf or standalone.conf can be used unchanged;
3. the environment: ``PULSAR_PREFIX_<name>`` and ``<name>``, as Pulsar's container images read it (and weaker than
   the file ``-Dpulsar.auth.basic.conf=<file>`` in ``PULSAR_EXTRA_OPTS``, which test scripts set);
4. flags: ``--set name=value``.

An empty value leaves the setting as it was; a port that is empty is not opened. Names of Pulsar's that have no effect
here yet are accepted and counted in one notice for each source. A name that Pulsar 4.0.8 does not know either may come
from another version or belong to a plugin, so files and ``PULSAR_PREFIX_`` may have it, and a notice names it; it is
refused as a flag, when it is a misspelling, and when it sounds as if it protected. Settings that would protect the
broker are refused as long as they are not built, because ignoring them would open the broker
(:mod:`magnetar.config.protection`).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

from magnetar.config.advertised_listeners import advertised_listeners
from magnetar.config.authorization_settings import contradiction
from magnetar.config.properties import properties_text, read_properties, shown_name, words
from magnetar.config.protection import PROTECTIONS, sounds_protective
from magnetar.config.setting_field import SettingInfo
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError

_ENVIRONMENT_PREFIX: Final = "PULSAR_PREFIX_"
_JAVA_OPTIONS: Final = "PULSAR_EXTRA_OPTS"
_BASIC_PROPERTY: Final = re.compile(r"(?:^|\s)-Dpulsar\.auth\.basic\.conf=(\S+)")
_NAME: Final = re.compile(r"[-.\w]+")
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,19}", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""As Java writes and reads them: Python takes 1_000 and the digits of all scripts, too."""
FORMS: Final = {
    "": (re.compile(r"[^\x00-\x1f\x7f]*"), "a text without control characters"),
    "name": (re.compile(r"[-=:.\w]+", re.ASCII), "letters, digits and -=:._"),
    "host": (re.compile(r"[-.:%\w]*", re.ASCII), "a host name or an IP address, without a port"),
    "hosts": (re.compile(r"[-.:%\w*, ]*", re.ASCII), "host names, separated by commas"),
    "words": (re.compile(r"\[?[^\x00-\x1f\x7f\[\]]*\]?"), "a list, separated by commas"),
}
"""Patterns of texts, and their descriptions for errors."""
_NAMES_IN_NOTICE: Final = 8
_MISSPELT: Final = 0.9
"""Likeness (``difflib``) from which on an unknown name is a misspelling of a known one."""
_VALUE_SHOWN: Final = 200


class PulsarSetting(NamedTuple):
    """One row of ``pulsar_settings.tsv``: a setting of Apache Pulsar 4.0.8."""

    name: str
    type: str
    default: str
    shipped: tuple[str, ...]
    """Values in the two configuration files of the distribution, where they differ from the default."""
    dynamic: bool
    """Whether Pulsar lets it be changed while the broker runs."""


class GivenValue(NamedTuple):
    """One value as it was written, and where: ``conf/broker.conf:12``, ``environment``, ``--set``."""

    where: str
    source: str
    name: str
    value: str


@dataclasses.dataclass(frozen=True, slots=True)
class Configuration:
    """The settings, notices about them for the start, and the origins of those that are not defaults."""

    settings: Settings
    notices: tuple[str, ...]
    origin: Mapping[str, str]
    """Where each setting that is not at its default comes from."""


def load(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    base: Settings | None = None,
) -> Configuration:
    """Read all sources. Raises InvalidValueError naming file, line, key and what is accepted."""
    in_file = list(_from_file(file))
    given = [
        *_from_java_options(environment or {}),
        *in_file,
        *_from_environment(environment or {}),
        *_from_flags(flags),
    ]
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    unused: dict[str, list[GivenValue]] = {}
    unknown: dict[str, list[str]] = {}
    last: dict[str, GivenValue] = {}
    notices = _contradictions(in_file)
    for item in given:
        counts = item.value != "" or switches_off(item.name)
        if item.name in setting_types() and counts:
            values[item.name] = convert(item)
        if has_effect(item.name):
            if counts:
                origin[item.name] = item.where
        elif item.name not in pulsar_settings():
            _check_unknown(item)
            unknown.setdefault(item.source, []).append(item.name)
        else:
            unused.setdefault(item.source, []).append(item)
            if item.value != "":
                last[item.name] = item
    for item in last.values():
        _check_protection(item, values)
    notices += [_notice(source, items) for source, items in unused.items()]
    notices += [_unknown_notice(source, names) for source, names in unknown.items()]
    settings = dataclasses.replace(base or Settings(), **values)
    _check_together(settings, origin)
    return Configuration(settings, tuple(notices), origin)


@cache
def setting_types() -> dict[str, Any]:
    """Name and type of every field of Settings."""
    hints = get_type_hints(Settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(Settings)}


def has_effect(name: str) -> bool:
    """Whether ``name`` is a setting of magnetar that has an effect."""
    return name in setting_types() and about(name).effect


def switches_off(name: str) -> bool:
    """Whether an empty value of ``name`` switches off what the setting stands for."""
    return name in setting_types() and about(name).off


def is_secret(name: str) -> bool:
    """Whether the value of ``name`` must not be shown."""
    return name in setting_types() and about(name).secret


def about(name: str) -> SettingInfo:
    """Description and bounds of one of our settings."""
    found = Settings.__dataclass_fields__[name].metadata["about"]
    assert isinstance(found, SettingInfo)
    return found


@cache
def pulsar_settings() -> dict[str, PulsarSetting]:
    """Every setting that Apache Pulsar 4.0.8 knows, by name."""
    text = files("magnetar.config").joinpath("pulsar_settings.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {
        name: PulsarSetting(name, kind, default, tuple(filter(None, shipped.split("|"))), dynamic == "yes")
        for name, kind, default, shipped, dynamic in rows
    }


def convert(given: GivenValue) -> object:
    """The typed value of one of our settings. Raises InvalidValueError."""
    kind = setting_types()[given.name]
    limits = about(given.name)
    if given.value == "" and limits.off:
        return None
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if given.value in choices:
            return given.value
        raise _not_accepted(given, "one of " + ", ".join(choices))
    if kind is bool:
        if given.value.lower() in ("true", "false"):
            return given.value.lower() == "true"
        raise _not_accepted(given, "true or false")
    if kind is int or int in get_args(kind):
        return _whole_number(given, limits)
    if kind is float:
        return _number(given, limits)
    if limits.members:
        return _words(given, limits.members)
    form, wanted = FORMS[limits.form]
    if not form.fullmatch(given.value):
        raise _not_accepted(given, wanted)
    return given.value


def _whole_number(given: GivenValue, limits: SettingInfo) -> int:
    wanted = "a whole number" + (f" from {limits.low} to {limits.high}" if limits.low is not None else "")
    if not _WHOLE.fullmatch(given.value):
        raise _not_accepted(given, wanted)
    number = int(given.value)
    if limits.low is not None and limits.high is not None and not limits.low <= number <= limits.high:
        raise _not_accepted(given, wanted)
    return number


def _number(given: GivenValue, limits: SettingInfo) -> float:
    number = float(given.value) if _DECIMAL.fullmatch(given.value) else math.nan
    if limits.low is None or limits.high is None or not limits.low <= number <= limits.high:
        raise _not_accepted(given, f"a number from {limits.low} to {limits.high}")
    return number


def _words(given: GivenValue, members: tuple[str, ...]) -> str:
    """Check a list of words; return it in its order and without blanks."""
    found = words(given.value)
    if not found or not all(word in members for word in found):
        raise _not_accepted(given, "a list of " + ", ".join(members))
    return ",".join(found)


def _not_accepted(given: GivenValue, wanted: str) -> InvalidValueError:
    if is_secret(given.name):
        return InvalidValueError(f"{given.where}: {given.name}: its value is not accepted; expected {wanted}")
    shown = given.value if len(given.value) <= _VALUE_SHOWN else given.value[:_VALUE_SHOWN] + "..."
    return InvalidValueError(f"{given.where}: {given.name}: {shown!r} is not accepted; expected {wanted}")


def _from_file(file: Path | None) -> Iterable[GivenValue]:
    if file is None:
        return
    try:
        text = properties_text(file)
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"{file}: cannot read the configuration: {error}") from error
    for line, key, value in read_properties(text):
        yield GivenValue(f"{file}:{line}", str(file), key, value)


def _from_java_options(environment: Mapping[str, str]) -> Iterable[GivenValue]:
    """The one system property of Pulsar's that is a setting; scripts set it, and every other source is stronger."""
    found = _BASIC_PROPERTY.search(environment.get(_JAVA_OPTIONS, ""))
    if found is not None:
        yield GivenValue(f"environment variable {_JAVA_OPTIONS}", "environment", "basicAuthConf", found[1].strip("'\""))


def _from_environment(environment: Mapping[str, str]) -> Iterable[GivenValue]:
    for variable, value in environment.items():
        if variable.startswith(_ENVIRONMENT_PREFIX):
            name = variable.removeprefix(_ENVIRONMENT_PREFIX)
            yield GivenValue(f"environment variable {variable}", "environment", name, value)
    for variable, value in environment.items():
        # any other variable belongs to another program, whatever it looks like
        if variable in setting_types() or variable in pulsar_settings():
            yield GivenValue(f"environment variable {variable}", "environment", variable, value)


def _from_flags(flags: Sequence[str]) -> Iterable[GivenValue]:
    for flag in flags:
        name, equals, value = flag.partition("=")
        if not equals:
            # it may be a secret, or a name that one follows after a colon or a blank
            first = _NAME.match(flag.strip())
            known = first is not None and (first[0] in setting_types() or first[0] in pulsar_settings())
            shown = first[0] if first and known else "a text that is not shown, as it may be a secret"
            raise InvalidValueError(f"--set {shown}: expected name=value, for instance --set brokerServicePort=6650")
        name = name.strip()
        # nor is the value shown of a name that is not known: it may be a misspelt secret's
        known = name in PROTECTIONS or (name in setting_types() and not is_secret(name))
        # text followed by "==" is the end of a base64 text, not a name
        where = f"--set {flag}" if known else f"--set {shown_name(name if value.strip('=') else name + equals)}"
        yield GivenValue(where, "--set", name, value.strip())


def _check_unknown(given: GivenValue) -> None:
    """Refuse a name that Pulsar 4.0.8 does not know, unless another version or a plugin may have it."""
    near = get_close_matches(given.name, [*setting_types(), *pulsar_settings()], n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}?" if near else "docs/settings.md lists the names"
    misspelt = get_close_matches(given.name, near, cutoff=_MISSPELT)
    shown = f"{given.where}: {shown_name(given.name)}" if given.source != "--set" else given.where
    if misspelt or given.source == "--set":
        raise InvalidValueError(f"{shown}: no such setting; {hint}")
    if sounds_protective(given.name) and given.value.lower() not in ("", "false"):
        raise InvalidValueError(
            f"{shown}: no such setting, and by its name it protects, so that ignoring it could "
            f"open the broker. Leave it out if it need not; {hint}"
        )


def _check_protection(given: GivenValue, values: Mapping[str, Any]) -> None:
    """Refuse settings that ask for protection, and an offload driver without a place for its copies."""
    found = PROTECTIONS.get(given.name)
    if found is not None and found.asks_for(given.value):
        why = "does not do that yet" if found.relied_on else "cannot protect the broker that way yet"
        raise InvalidValueError(
            f"{given.where}: {given.name}: {given.value!r} is not accepted; magnetar {why} and will not start as if it "
            f"could. {found.instead}"
        )
    if given.name == "managedLedgerOffloadDriver" and not values.get("offloadUrl"):
        raise InvalidValueError(
            f"{given.where}: {given.name}: {given.value!r} alone offloads nothing in magnetar. Set offloadUrl too "
            "(file:///path, s3://bucket/prefix, gs://... or az://...), or leave it out (docs/offload.md)"
        )


def _check_together(settings: Settings, origin: Mapping[str, str]) -> None:
    """Refuse settings of which one needs another."""
    wrong = (
        contradiction(settings, authenticated=settings.authenticationEnabled)
        or _closed_ports(settings)
        or _same_ports(settings)
        or _wrong_listeners(settings)
    )
    if wrong:
        name = wrong.partition(":")[0]
        raise InvalidValueError(f"{origin.get(name, 'settings')}: {wrong}")


def _wrong_listeners(settings: Settings) -> str:
    """Return what is wrong with the advertised listeners, with the setting's name first; empty if nothing is."""
    try:
        advertised_listeners(settings.advertisedListeners, settings.internalListenerName)
    except InvalidValueError as error:
        return str(error)
    return ""


def _same_ports(settings: Settings) -> str:
    """Return which port has two uses in this broker, with its setting's name first; empty if none is."""
    taken: dict[int, str] = {}
    for name in ("brokerServicePort", "brokerServicePortTls", "webServicePort", "webServicePortTls"):
        port = getattr(settings, name)
        if port and port in taken:
            return f"{name}: {port} is {taken[port]} already; each interface of this broker needs a port of its own"
        if port:
            taken[port] = name
    return ""


def _closed_ports(settings: Settings) -> str:
    """Return which setting needs a port that is not open, with its name first; empty if none does."""
    if settings.brokerServicePort is None and settings.brokerServicePortTls is None:
        return "brokerServicePort: no port is left for clients; set brokerServicePort, brokerServicePortTls or both"
    if settings.brokerServicePortTls is None and settings.webServicePortTls is None:
        asked = {
            "tlsEnabled": settings.tlsEnabled,
            "tlsRequireTrustedClientCertOnConnect": settings.tlsRequireTrustedClientCertOnConnect,
        }
        for name in filter(asked.get, asked):
            return f"{name}: no port speaks TLS; set brokerServicePortTls=6651 and webServicePortTls=8443 too"
    return ""


def _contradictions(in_file: Sequence[GivenValue]) -> list[str]:
    """Name settings that a file has twice, with different values: the one that is lost was meant, too.

    Flags may be repeated: scripts override their own.
    """
    found: list[str] = []
    before: dict[str, GivenValue] = {}
    for item in in_file:
        if item.value == "":
            continue
        earlier = before.get(item.name, item)
        if earlier.value != item.value:
            found.append(
                f"{item.where}: {item.name} has another value than at {earlier.where}; this one counts, remove one"
            )
        before[item.name] = item
    return found


def _notice(source: str, items: list[GivenValue]) -> str:
    changed = sorted({item.name for item in items if _is_choice(item)})
    text = f"{source}: {len({item.name for item in items})} settings of Apache Pulsar have no effect in magnetar"
    if changed:
        text += f"; these were changed from Pulsar's own values: {_listed(changed)} (why: magnetar config --others)"
    return text


def _unknown_notice(source: str, names: list[str]) -> str:
    return (
        f"{source}: neither Apache Pulsar 4.0.8 nor magnetar has these settings, and they have no effect: "
        f"{_listed(sorted(set(names)))}"
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMES_IN_NOTICE
    return ", ".join(map(shown_name, names[:_NAMES_IN_NOTICE])) + (f" and {more} more" if more > 0 else "")


def _is_choice(item: GivenValue) -> bool:
    known = pulsar_settings()[item.name]
    return item.value not in ("", known.default, *known.shipped)
