"""Every setting of Apache Pulsar has an effect here or a reason why not."""

from __future__ import annotations

from magnetar.config.configuration import has_effect, pulsar_settings
from magnetar.config.dynamic_settings import dynamic_names, is_effective, is_kept
from magnetar.config.setting_effects import EffectKind, all_effects, effect_of, reasons


def test_each_setting_has_one_effect() -> None:
    """No setting is in both lists, and none in neither."""
    both = sorted(name for name in reasons() if has_effect(name))
    assert not both, "these have an effect now: take their rows out of other_settings.tsv"
    assert not [name for name in reasons() if name not in pulsar_settings()]
    effects = all_effects()
    assert set(effects) == set(pulsar_settings())
    assert all(effect.reason for effect in effects.values() if effect.kind is not EffectKind.EFFECTIVE)


def test_reasons_are_sorted_and_whole() -> None:
    """The table can be read by people."""
    names = list(reasons())
    assert names == sorted(names)
    assert {kind for kind, _ in reasons().values()} == {"none", "later"}


def test_what_may_change_while_the_broker_runs() -> None:
    """Each dynamic name has an effect, or steers several brokers or protects and is kept."""
    for name in dynamic_names():
        assert is_effective(name) != is_kept(name), name
    assert is_effective("allowAutoTopicCreation") and not is_kept("allowAutoTopicCreation")
    assert is_kept("loadBalancerSheddingEnabled") and not is_effective("loadBalancerSheddingEnabled")
    assert not is_kept("managedLedgerForceRecovery") and not is_effective("managedLedgerForceRecovery")
    assert effect_of("managedLedgerForceRecovery").reason
