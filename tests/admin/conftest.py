"""The REST interface over a fake broker."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from magnetar.admin.application import create_app
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.grants import Grants
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once


class World(NamedTuple):
    """An application with its broker and its metadata; with ``authorizationEnabled`` its clients have roles."""

    rest: RestClient
    broker: FakeBroker
    resources: Resources


def world(settings: Settings) -> World:
    """A standalone with the tenant ``ref``, the namespace ``ref/main`` and no topics."""
    resources = Resources(MemoryMetadataStore(), settings)
    at_once(resources.ensure_defaults())
    at_once(resources.tenants.create("ref", {"adminRoles": [], "allowedClusters": ["standalone"]}))
    at_once(resources.namespaces.create("ref", "main"))
    broker = FakeBroker(resources, settings)
    authorizer = None
    if settings.authorizationEnabled:
        authorizer = Authorizer(Grants(resources.tenants, resources.namespaces, settings))
    app = create_app(broker.ports(), resources, settings, None, authorizer)
    return World(RestClient(app), broker, resources)


@pytest.fixture(scope="module")
def shared_world() -> World:
    """For requests that change nothing: making an application takes longer than such a test."""
    return world(Settings())


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture
def own_world(settings: Settings) -> World:
    return world(settings)


@pytest.fixture
def rest(own_world: World) -> RestClient:
    return own_world.rest


@pytest.fixture
def broker(own_world: World) -> FakeBroker:
    return own_world.broker


@pytest.fixture
def resources(own_world: World) -> Resources:
    return own_world.resources
