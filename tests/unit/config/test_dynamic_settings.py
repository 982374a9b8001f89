"""Changes of settings while a broker runs: which, to what, and who is notified (rule 11.2.4)."""

from __future__ import annotations

import pytest

from magnetar.config.configuration import setting_types
from magnetar.config.dynamic_settings import VALUE_MAX, DynamicSettings, checked, dynamic_names, is_effective
from magnetar.config.settings import Settings
from magnetar.model.errors import PreconditionFailedError


def test_a_change_lasts_until_it_is_forgotten() -> None:
    """Applying says the whole truth: what is not given has the value of the start."""
    settings = Settings(maxTenants=3)
    dynamic = DynamicSettings(settings)
    assert dynamic.apply({"maxTenants": "5"}) == ["maxTenants is 5 from now on"]
    assert settings.maxTenants == 5
    assert dynamic.apply({"maxTenants": "5"}) == []
    dynamic.apply({})
    assert settings.maxTenants == 3


def test_only_who_copied_a_changed_setting_is_notified() -> None:
    """All changes are made before the first callback."""
    settings = Settings()
    dynamic = DynamicSettings(settings)
    seen: list[tuple[str, int, bool]] = []
    dynamic.on_change(["maxTenants"], lambda: seen.append(("a", settings.maxTenants, settings.allowAutoTopicCreation)))
    dynamic.on_change(["maxNamespacesPerTenant"], lambda: seen.append(("b", 0, False)))
    dynamic.apply({"maxTenants": "5", "allowAutoTopicCreation": "false"})
    assert seen == [("a", 5, False)]


def test_values_of_another_version_are_left_out() -> None:
    """They must not keep a broker from starting."""
    settings = Settings()
    said = DynamicSettings(settings).apply(
        {"maxTenants": "many", "noSuchSetting": "1", "webServicePort": "1", "loadBalancerSheddingEnabled": "x"}
    )
    assert settings == Settings()
    assert len(said) == 3 and all("left out" in line for line in said), said


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("webServicePort", "1", "Can't update non-dynamic configuration"),
        ("nope", "1", "Can't update non-dynamic configuration"),
        ("maxTenants", "x", "'x' is not accepted; expected a whole number"),
        ("maxTenants", "-1", "'-1' is not accepted"),
        ("maxTenants", "9" * 30, "is not accepted"),
        ("maxTenants", "", "is not accepted"),
        ("superUserRoles", "a" * (VALUE_MAX + 1), f"{VALUE_MAX} are the most"),
        ("superUserRoles", "a\nb", "is not accepted"),
        ("allowAutoTopicCreation", "yes", "expected true or false"),
        ("brokerClientAuthenticationPlugin", "x", "restart"),
        ("brokerClientAuthenticationParameters", "token:secret", "has no effect in magnetar"),
        ("entryFilterNames", "x", "has no effect in magnetar"),
        ("maxConcurrentTopicLoadRequest", "0", "has no effect in magnetar"),
        ("maxConcurrentTopicLoadRequest", "x", "has no effect in magnetar"),
        ("clientLibraryVersionCheckEnabled", "true", "has no effect in magnetar"),
        # Apache Pulsar 4.0.8 refuses this one with 412, too, and takes the name of any class that there is
        ("loadManagerClassName", "nosuch.Class", "has no effect in magnetar"),
    ],
)
def test_what_is_refused(name: str, value: str, reason: str) -> None:
    """Each refusal has its reason, and no value of a secret in it."""
    with pytest.raises(PreconditionFailedError, match=reason.replace("(", r"\(")) as caught:
        checked(name, value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxConcurrentTopicLoadRequest", "50000"),
        ("clientLibraryVersionCheckEnabled", "False"),
    ],
)
def test_values_at_which_nothing_is_asked_for_are_kept(name: str, value: str) -> None:
    """A running broker takes what a start takes."""
    settings = Settings()
    assert name in dynamic_names() and checked(name, value) == value
    assert DynamicSettings(settings).apply({name: value}) == []
    assert settings == Settings()


def test_a_protection_of_another_version_is_not_left_out_without_a_word() -> None:
    """A broker that could protect so has kept the change."""
    (said,) = DynamicSettings(Settings()).apply({"clientLibraryVersionCheckEnabled": "true"})
    assert "clientLibraryVersionCheckEnabled has no effect in magnetar" in said


def test_every_effective_name_takes_its_own_default() -> None:
    """Deleting a change and setting what was there before are the same."""
    names = [name for name in dynamic_names() if is_effective(name)]
    assert len(names) > 30
    for name in names:
        default = getattr(Settings(), name)
        if default is None:
            continue
        text = str(default).lower() if setting_types()[name] is bool else str(default)
        assert checked(name, text) == default, name
