"""The settings of a running broker, and the one place where they change (rule 11.2.4).

Most of the broker reads a setting at the moment of use, from the one :class:`Settings` object of its process. What
copied a value registers a callback with :meth:`DynamicSettings.on_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from magnetar.config.configuration import GivenValue, convert, has_effect, pulsar_settings, setting_types
from magnetar.config.protection import PROTECTIONS
from magnetar.config.setting_effects import GEO_REPLICATION, SEVERAL_BROKERS, effect_of
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError, PreconditionFailedError

NAMES_MAX: Final = 1_000
VALUE_MAX: Final = 65_536
_READ_ONCE: Final = frozenset({"brokerClientAuthenticationPlugin"})
"""Settings that Pulsar changes in a running broker, and that only a start reads here."""
_LATER_VERSIONS: Final = frozenset({"loadBalancerSheddingExcludedNamespaces"})
"""Settings of later versions of Pulsar that steer how topics are spread over brokers."""


def dynamic_names() -> list[str]:
    """The names that may be given to a running broker, sorted: those with an effect, and those that are only kept."""
    return sorted(name for name in (*pulsar_settings(), *_LATER_VERSIONS) if is_effective(name) or is_kept(name))


def is_dynamic(name: str) -> bool:
    """Whether Pulsar can change that setting on a running broker, with an effect here or without one."""
    known = pulsar_settings().get(name)
    return name in _LATER_VERSIONS or (known is not None and known.dynamic)


def is_effective(name: str) -> bool:
    """Whether a change of that setting has an effect on a running broker."""
    return is_dynamic(name) and has_effect(name) and name not in _READ_ONCE


def is_kept(name: str) -> bool:
    """Whether a value is kept and shown, and steers nothing.

    There is one broker and one cluster; or it protects and is not built, and takes the values that a start takes.
    """
    if name in _LATER_VERSIONS:
        return True
    if not is_dynamic(name) or has_effect(name):
        return False
    return name in PROTECTIONS or effect_of(name).reason.startswith((SEVERAL_BROKERS, GEO_REPLICATION))


def _asks_for_protection(name: str, value: str) -> bool:
    """Whether the setting protects, is not built, and would protect with that value."""
    return not has_effect(name) and name in PROTECTIONS and PROTECTIONS[name].asks_for(value)


def checked(name: str, value: str) -> object:
    """The typed value that a running broker may be given; of a setting that is only kept, the text.

    Raises PreconditionFailedError with Pulsar's text for a name that cannot be changed while the broker runs, and for
    a value that the setting does not take.
    """
    if len(value) > VALUE_MAX:
        raise PreconditionFailedError(
            f"{name[:200]}: the value is {len(value)} characters long; {VALUE_MAX} are the most"
        )
    if is_kept(name) and not _asks_for_protection(name, value):
        return value
    if not is_dynamic(name):
        raise PreconditionFailedError("Can't update non-dynamic configuration")
    if name in _READ_ONCE:
        raise PreconditionFailedError(f"{name} is read when the broker starts; change it in broker.conf and restart")
    if not has_effect(name):
        raise PreconditionFailedError(f"{name} has no effect in magnetar ({effect_of(name).reason})")
    try:
        return convert(GivenValue("dynamic configuration", "dynamic configuration", name, value))
    except InvalidValueError as error:
        raise PreconditionFailedError(str(error)) from None


class DynamicSettings:
    """The owner of the settings that a running broker reads; used from the event loop's thread."""

    def __init__(self, settings: Settings) -> None:
        """``settings``: read by everybody, changed by this object only."""
        self.settings = settings
        self._started_with = {name: getattr(settings, name) for name in setting_types()}
        self._callbacks: list[tuple[frozenset[str], Callable[[], None]]] = []

    def on_change(self, names: Iterable[str], callback: Callable[[], None]) -> None:
        """Call ``callback`` after each change of one of the settings; all that changed together are changed before."""
        self._callbacks.append((frozenset(names), callback))

    def apply(self, given: Mapping[str, str]) -> list[str]:
        """Let exactly these values be in force; all other settings have the values of the start.

        Returns what there is to log: each change, and each value that cannot be applied (another version kept it) and
        is left out.
        """
        wanted: dict[str, Any] = {}
        said: list[str] = []
        for name, value in given.items():
            try:
                found = checked(name, value)
            except PreconditionFailedError as error:
                said.append(f"a kept change of a setting is left out: {error}")
                continue
            if not is_kept(name):
                wanted[name] = found
        changed = {
            name
            for name, first in self._started_with.items()
            if getattr(self.settings, name) != wanted.get(name, first)
        }
        for name in changed:
            # the class is frozen for everybody else
            object.__setattr__(self.settings, name, wanted.get(name, self._started_with[name]))
        said += [f"{name} is {getattr(self.settings, name)} from now on" for name in sorted(changed)]
        for names, callback in self._callbacks:
            if names & changed:
                callback()
        return said
