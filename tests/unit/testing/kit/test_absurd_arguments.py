"""Absurd values for every parameter of the test kit: taken, or refused with an error that names the parameter."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from magnetar import aio
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError, NotFoundError
from magnetar.testing import PulsarBroker
from tests.support.absurd_values import ABSURD, text_of

LONG: Final = 1.0
"""Seconds from which a value is left out that would be waited for."""
NEEDED: Final[dict[str, Any]] = {
    "count": 1, "subscription": "s", "topic": "orders", "message_id": aio.MessageId(0, 0, 0, 0), "command": "Send",
    "seconds": 0.0, "timeout": 0.0,
}  # fmt: skip
ON_TOPIC: Final = ("messages", "backlog", "expect", "expect_backlog")
ON_FAULTS: Final = ("drop", "drop_ack", "drop_receipt", "cut", "cut_at", "refuse", "delay", "chaos")
CALLS: Final = [
    *(("broker", name) for name in ("topic", "topics", "explain")),
    *(("topic", name) for name in ON_TOPIC),
    *(("faults", name) for name in ON_FAULTS),
    *(("clock", name) for name in ("advance", "join")),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker() as broker:
        with broker.client() as client:
            client.subscribe("orders", "s")
            client.create_producer("orders").send(b"x")
        yield broker


def _told(error: BaseException, name: str) -> bool:
    return (
        name in str(error)
        or "time moves forward" in str(error)
        or (name in ("topic", "name") and isinstance(error, InvalidTopicNameError))
    )


def _tried(call: Callable[..., Any], name: str, needed: dict[str, Any], wrong: list[str]) -> None:
    for value in ABSURD:
        if name == "timeout" and type(value) in (int, float) and value > LONG:
            continue
        try:
            found = call(**{**needed, name: value})
        except (InvalidValueError, InvalidTopicNameError, TypeError, ValueError) as error:
            if not _told(error, name):
                wrong.append(f"{name}={text_of(value)}: {type(error).__name__}: {error}")
        except (AssertionError, NotFoundError):
            pass  # about what is in the broker
        except Exception as error:
            wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
        else:
            if callable(stop := getattr(found, "stop", None)):
                stop()


@pytest.mark.parametrize(("on", "method"), CALLS)
def test_every_parameter_takes_or_refuses_what_is_absurd(broker: PulsarBroker, on: str, method: str) -> None:
    handle = {
        "broker": broker, "topic": broker.topic("orders"), "faults": broker.faults, "clock": broker.clock,
    }[on]  # fmt: skip
    call = getattr(handle, method)
    parameters = inspect.signature(call).parameters
    needed = {name: NEEDED[name] for name in parameters if name in NEEDED and name not in ("topic", "subscription")}
    for name in ("topic", "subscription"):
        if name in parameters and parameters[name].default is inspect.Parameter.empty:
            needed[name] = NEEDED[name]
    needed.pop("seconds", None) if method == "advance" else None
    if method == "topic":
        needed = {}
    wrong: list[str] = []
    for name in parameters:
        if method == "join" or name in ("minutes", "hours", "days") or (method, name) == ("advance", "seconds"):
            values = [one for one in ABSURD if not _moves(one)]
            for value in values:
                try:
                    call(**{name: value})
                except (InvalidValueError, InvalidTopicNameError, TypeError, ValueError) as error:
                    if not _told(error, name):
                        wrong.append(f"{name}={text_of(value)}: {type(error).__name__}: {error}")
                except Exception as error:
                    wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
            continue
        _tried(call, name, needed, wrong)
    assert not wrong, "\n".join([f"{len(wrong)} bad refusals:", *wrong])
    assert broker.topic("orders").messages()


def _moves(value: object) -> bool:
    """Whether a clock would move far by it."""
    if isinstance(value, timedelta):
        return value > timedelta(0)
    return isinstance(value, int | float) and 0 < value < 2**40


def test_a_broker_takes_or_refuses_what_is_absurd() -> None:
    wrong: list[str] = []
    for name in ("seed", "settings", "with_rest"):
        for value in ABSURD:
            try:
                PulsarBroker(**{name: value}).close()
            except (InvalidValueError, InvalidTopicNameError, TypeError, ValueError) as error:
                if not _told(error, name) and "setting" not in str(error):
                    wrong.append(f"{name}={text_of(value)}: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
    assert not wrong, "\n".join([f"{len(wrong)} bad refusals:", *wrong])


def test_the_twins_for_event_loops_refuse_the_same(broker: PulsarBroker) -> None:
    topic = broker.topic("orders")

    async def refused() -> None:
        for wait, name in (
            (lambda: topic.expect_async("1"), "count"),  # type: ignore[arg-type]
            (lambda: topic.expect_async(1, timeout="1"), "timeout"),  # type: ignore[arg-type]
            (lambda: topic.expect_backlog_async(None), "subscription"),  # type: ignore[arg-type]
            (lambda: topic.expect_backlog_async("s", None), "count"),  # type: ignore[arg-type]
            (lambda: broker.clock.advance_async("1"), "seconds"),  # type: ignore[arg-type]
            (lambda: broker.clock.advance_async(minutes=None), "minutes"),  # type: ignore[arg-type]
        ):
            with pytest.raises(ValueError, match=name):
                await wait()

    asyncio.run(refused())
