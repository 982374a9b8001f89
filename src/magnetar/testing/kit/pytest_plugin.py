"""The pytest plugin: a fresh broker for each test that asks for one, and its seed where a test fails.

Fixtures: ``pulsar_broker`` (a broker; for each test or, by the ini option ``pulsar_broker_scope``, for a class, module,
package or session), ``pulsar_client`` (a blocking client of it), ``pulsar_aio_client`` (a function that makes an
asyncio client in the running loop) and ``pulsar_admin`` (a client of its REST interface). ``--pulsar-seed`` repeats
what chance did. A test that makes a broker and does not close it fails.

pytest imports this in every run: it imports nothing of magnetar before a test asks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import pytest

if TYPE_CHECKING:
    from magnetar.admin_client.client import Admin
    from magnetar.client.aio.client import Client as AioClient
    from magnetar.client.blocking.client import Client
    from magnetar.testing.kit.pulsar_broker import PulsarBroker

Scope = Literal["function", "class", "module", "package", "session"]

_SCOPES: Final = ("function", "class", "module", "package", "session")
_SEED: Final = "--pulsar-seed"
_HOME: Final = "magnetar.testing.kit.pulsar_broker"
_VARIABLE: Final = "PULSAR_SEED"
"""Where every broker finds its seed, also one that a test makes itself."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; `pulsar_broker_settings` are lines `name=value` of broker.conf."""
    group = parser.getgroup("pulsar", "brokers of magnetar.testing")
    group.addoption(_SEED, type=int, metavar="N", help="the seed of all brokers, as a failed test has printed it")
    parser.addini("pulsar_broker_scope", "how long a broker lives: " + ", ".join(_SCOPES), default="function")
    parser.addini("pulsar_broker_settings", "settings of broker.conf, name=value", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Give the seed to all brokers of the run."""
    given: int | None = config.getoption(_SEED)
    if given is not None:
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = str(given)

        def undo() -> None:
            os.environ.pop(_VARIABLE, None)
            if before is not None:
                os.environ[_VARIABLE] = before

        config.add_cleanup(undo)


def _scope(fixture_name: str, config: pytest.Config) -> Scope:
    scope = config.getini("pulsar_broker_scope")
    if scope not in _SCOPES:
        raise pytest.UsageError(f"pulsar_broker_scope: {scope!r} is not one of {', '.join(_SCOPES)}")
    return cast(Scope, scope)


@pytest.fixture(scope=_scope)
def pulsar_broker(request: pytest.FixtureRequest) -> Iterator[PulsarBroker]:
    """Give a broker in this process, empty when it is made; its time, faults and content are the test's."""
    from magnetar.testing.kit.pulsar_broker import PulsarBroker

    with PulsarBroker(settings=_settings(request.config)) as broker:
        yield broker


def _settings(config: pytest.Config) -> dict[str, object]:
    lines: list[str] = config.getini("pulsar_broker_settings")
    pairs = [line.partition("=") for line in lines]
    wrong = [name for name, equals, _ in pairs if not equals]
    if wrong:
        raise pytest.UsageError(f"pulsar_broker_settings: {wrong[0]!r} is no line name=value")
    return {name.strip(): value.strip() for name, _, value in pairs}


@pytest.fixture
def pulsar_client(pulsar_broker: PulsarBroker) -> Iterator[Client]:
    """Give a blocking client of the broker, which shares its time."""
    with pulsar_broker.client() as client:
        yield client


@pytest.fixture
def pulsar_aio_client(pulsar_broker: PulsarBroker) -> Callable[..., AioClient]:
    """Give what makes an asyncio client in the running loop, which then shares the broker's time.

    It needs no plugin for coroutines: ``async with pulsar_aio_client() as client``.
    """
    return pulsar_broker.aio_client


@pytest.fixture
def pulsar_admin(pulsar_broker: PulsarBroker) -> Admin:
    """Give a client of the broker's REST interface."""
    return pulsar_broker.admin


def _open() -> set[PulsarBroker]:
    """Return the brokers that are open; without importing them where no test has."""
    module: Any = sys.modules.get(_HOME)
    return module.open_brokers() if module is not None else set()


def _forgotten() -> list[str]:
    """Return where brokers were made that were not closed and cannot be; each is reported once."""
    module: Any = sys.modules.get(_HOME)
    if module is None:
        return []
    found = list(module.forgotten)
    module.forgotten.clear()
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that leaves a broker open, and close it."""
    before = _open()
    _forgotten()
    result = yield
    left = _open() - before
    for broker in left:
        broker.close()
    lines = {broker.opened_at for broker in left}.union(_forgotten())
    if lines:
        places = ", ".join(sorted(lines))
        pytest.fail(f"a PulsarBroker was not closed: use `with PulsarBroker() as broker:` at {places}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Say with a failure which seeds its brokers had, and how the test is run again with them."""
    report: pytest.TestReport = yield
    if report.failed and report.when != "teardown":
        brokers = {broker.seed for broker in _open()} | _seeds_in(call)
        for seed in sorted(brokers):
            text = f"seed {seed}; to run it again: pytest {_SEED}={seed} '{item.nodeid}'"
            report.sections.append(("PulsarBroker", text))
    return report


def _seeds_in(call: pytest.CallInfo[None]) -> set[int]:
    """Return the seeds of brokers that the failed test had made itself and closed while it failed."""
    module: Any = sys.modules.get(_HOME)
    if module is None or call.excinfo is None:
        return set()
    found = set()
    for entry in call.excinfo.traceback:
        found |= {value.seed for value in entry.frame.f_locals.values() if isinstance(value, module.PulsarBroker)}
    return found
