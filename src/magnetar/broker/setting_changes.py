"""Brings changes of settings, given to the running broker over REST, to all that copied a value from them.

What was changed is kept in the metadata (:mod:`magnetar.metadata.dynamic_configuration`), so another broker's
administrator changes this broker too. Everything that reads a setting at the moment of use needs no word here.
"""

from __future__ import annotations

import logging

from magnetar.broker.connection.grant_changes import GrantChanges
from magnetar.broker.policies.broker_policies import broker_rates
from magnetar.broker.service import BrokerService
from magnetar.config.dynamic_settings import DynamicSettings, dynamic_names

log = logging.getLogger(__name__)


class SettingChanges:
    """Follows the kept changes from the construction of the broker on."""

    def __init__(self, service: BrokerService, grants: GrantChanges) -> None:
        self._service = service
        self._grants = grants
        self.dynamic = dynamic = DynamicSettings(service.settings)
        every = dynamic_names()
        dynamic.on_change(every, service.take_settings)
        dynamic.on_change(every, self._take_limits)
        dynamic.on_change(every, self._take_rates)
        dynamic.on_change(["managedLedgerCacheSizeMB"], self._take_cache_size)
        dynamic.on_change(["superUserRoles"], self._take_superusers)
        service.resources.dynamic_configuration.changed = self._follow
        self._follow()

    def _follow(self) -> None:
        for line in self.dynamic.apply(self._service.resources.dynamic_configuration.values()):
            log.info("dynamic configuration: %s", line)

    def _take_limits(self) -> None:
        self._service.resources.take_limits(self._service.settings)

    def _take_rates(self) -> None:
        service = self._service
        service.shared_limits.set_rates(broker_rates(service.settings), self._choose_limits)

    def _choose_limits(self) -> None:
        for topic in list(self._service.topics.values()):
            topic.shared_limits_changed()
        self._service.nonpersistent_topics.policies_changed(lambda _: True)

    def _take_cache_size(self) -> None:
        self._service.store.cache.set_bytes_max(self._service.settings.managedLedgerCacheSizeMB << 20)

    def _take_superusers(self) -> None:
        authorizer = self._service.authorizer
        if authorizer is not None and authorizer.grants.take_superusers(self._service.settings.super_user_roles):
            self._grants.everything()
