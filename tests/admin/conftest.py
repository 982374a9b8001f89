"""The REST interface over a fake broker."""

from __future__ import annotations

import pytest

from magnetar.admin.http import create_app
from magnetar.metadata.memory import MemoryMetadataStore
from magnetar.metadata.resources import Resources
from magnetar.runtime.settings import Settings
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def resources(settings: Settings) -> Resources:
    resources = Resources(MemoryMetadataStore(), settings)
    resources.tenants.create("ref", {"adminRoles": [], "allowedClusters": ["standalone"]})
    resources.namespaces.create("ref", "main")
    return resources


@pytest.fixture
def broker(resources: Resources) -> FakeBroker:
    return FakeBroker(resources)


@pytest.fixture
def rest(broker: FakeBroker, resources: Resources, settings: Settings) -> RestClient:
    return RestClient(create_app(broker, resources, settings))
