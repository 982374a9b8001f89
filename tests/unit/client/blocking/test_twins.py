"""The blocking client and the asyncio client are one client: the same methods, parameters and defaults.

Who adds a method or a parameter to one of them adds it to the other (``python -m tools.twins`` copies parameters). What
only the loop itself can use stands in `INNER`, what only threads can use in `OF_THREADS`.
"""

from __future__ import annotations

import inspect
from typing import Any
from unittest import mock

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pulsar.asyncio as official_aio  # type: ignore[import-untyped]
import pytest

from magnetar.client.aio import client as aio_client
from magnetar.client.aio import client_transaction as aio_transaction
from magnetar.client.aio.consumers import consumer as aio_consumer
from magnetar.client.aio.consumers import reader as aio_reader
from magnetar.client.aio.producers import producer as aio_producer
from magnetar.client.aio.views import table_view as aio_table_view
from magnetar.client.blocking import client, consumer, producer, reader, table_view, transaction
from tests.support.client_twins import INNER, OF_SIMULATIONS

TWINS: list[tuple[type, type]] = [
    (aio_client.Client, client.Client),
    (aio_producer.Producer, producer.Producer),
    (aio_consumer.Consumer, consumer.Consumer),
    (aio_reader.Reader, reader.Reader),
    (aio_table_view.TableView, table_view.TableView),
    (aio_transaction.ClientTransaction, transaction.ClientTransaction),
]
OF_THREADS = {
    "Producer": {"send_async"},
    "ClientTransaction": {"txn_id"},
}
"""What is an attribute there, or has no meaning on a loop."""
OPENING_METHODS = ["create_producer", "subscribe", "create_reader", "create_table_view"]
PLACED = {"pattern_auto_discovery_period", "is_pattern_topic"}
"""Parameters that have a place in one of the official clients, and are given by name in the other."""
MAPPINGS = {table_view.TableView}
"""Classes that are looked at, on a loop as in a thread."""
ENTERING = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}


def _methods(one: type) -> dict[str, Any]:
    return {
        name: value
        for base in reversed(one.__mro__[:-1])
        for name, value in vars(base).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }


def _parameters(method: Any) -> dict[str, inspect.Parameter]:
    return {
        name: one.replace(
            annotation=inspect.Parameter.empty, kind=inspect.Parameter.KEYWORD_ONLY if name in PLACED else one.kind
        )
        for name, one in inspect.signature(method).parameters.items()
        if name not in OF_SIMULATIONS | client._OF_THREADS | client._LISTENERS
    }


def _order(method: Any) -> list[str]:
    return [name for name in _parameters(method) if name not in PLACED]


@pytest.mark.parametrize(("asyncio_one", "blocking_one"), TWINS, ids=lambda one: one.__module__)
def test_the_same_methods(asyncio_one: type, blocking_one: type) -> None:
    inner = INNER.get(asyncio_one.__name__, set())
    theirs, ours = _methods(asyncio_one), _methods(blocking_one)
    assert inner <= set(theirs), "what is inner no more need not stand in INNER"
    assert set(theirs) - inner == set(ours) - OF_THREADS.get(blocking_one.__name__, set())
    for name, method in theirs.items():
        if name not in inner and not isinstance(method, property):
            assert _parameters(method) == _parameters(ours[name]), f"{asyncio_one.__name__}.{name}"
            assert _order(method) == _order(ours[name]), f"{asyncio_one.__name__}.{name}"
    for awaited, waited in ENTERING.items():
        assert hasattr(asyncio_one, awaited) == hasattr(blocking_one, waited) or blocking_one in MAPPINGS, waited


@pytest.mark.parametrize(("asyncio_one", "blocking_one"), TWINS, ids=lambda one: one.__module__)
def test_the_same_name(asyncio_one: type, blocking_one: type) -> None:
    assert asyncio_one.__name__ == blocking_one.__name__


def test_the_client_takes_the_same_parameters() -> None:
    """Those of the official client stand in its order, as positional ones."""
    theirs, ours = _parameters(aio_client.Client.__init__), _parameters(client.Client.__init__)
    assert {name: one.default for name, one in theirs.items()} == {name: one.default for name, one in ours.items()}
    official = inspect.signature(pulsar.Client.__init__).parameters
    given = inspect.signature(client.Client.__init__).parameters
    assert list(given)[: len(official)] == list(official)


OPENINGS = [
    *((client.Client, pulsar.Client, one) for one in OPENING_METHODS),
    *((aio_client.Client, official_aio.Client, one) for one in OPENING_METHODS if one != "create_table_view"),
]


@pytest.mark.parametrize(("ours", "official", "method"), OPENINGS)
def test_parameters_stand_at_the_places_of_the_official_client(ours: type, official: type, method: str) -> None:
    """What is written with positional arguments for the official client means the same here."""
    theirs = list(inspect.signature(getattr(official, method)).parameters)
    parameters = inspect.signature(getattr(ours, method)).parameters
    positional = [name for name, one in parameters.items() if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == theirs


class _Recorder:
    """A client that notes what its methods are called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(**given: Any) -> object:
            self.calls.append((name, given))
            return object()

        return call


class _Thread:
    """A thread that runs nothing."""

    def run(self, _coroutine: object, _undo: object = None) -> object:
        return mock.MagicMock()

    def gives_up_with(self, _giver: object) -> None:
        pass

    def post(self, _call: object) -> None:
        pass

    def closes_with(self, _facade: object, _handle: object) -> None:
        pass

    def closing(self) -> None:
        pass


@pytest.mark.parametrize("method", OPENING_METHODS)
def test_every_parameter_is_handed_on(method: str) -> None:
    """Each parameter arrives at the asyncio client as it was given, also one that it does not know."""
    one = client.Client.__new__(client.Client)
    recorder = one.twin = _Recorder()  # type: ignore[assignment]
    one._thread = _Thread()  # type: ignore[assignment]
    given = {
        name: object()
        for name, parameter in inspect.signature(getattr(one, method)).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    one._listeners = mock.MagicMock()
    if method != "create_table_view":
        given["not_known"] = object()
    given |= {name: lambda *_: None for name in client._LISTENERS if name in given}
    getattr(one, method)(**given)
    assert recorder.calls == [(method, {name: one for name, one in given.items() if name not in client._LISTENERS})]
