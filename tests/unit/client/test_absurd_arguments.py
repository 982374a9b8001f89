"""Absurd values for every parameter of every public method: taken, or refused with an error that names the parameter.

What the methods and parameters are is read from the classes, so that a new one is tried, too. A refusal is of a
documented class (ArgumentError, which is a ValueError, or TypeError) and comes before anything goes to the broker; the
handle works afterwards.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

import magnetar
from magnetar import aio
from magnetar.client.aio.topics.delivery_options import DeliveryParameters
from magnetar.client.errors import ArgumentError, ClientError, ClientTimeoutError, NotBuiltError
from magnetar.model.errors import InvalidValueError
from magnetar.testing import PulsarBroker
from tests.support.absurd_values import ABSURD, text_of
from tests.support.client_twins import INNER, OF_SIMULATIONS

BEFORE_THE_BROKER: Final = (ArgumentError, InvalidValueError, TypeError, NotBuiltError)
"""What is raised about arguments."""
_NUMBERS: Final = itertools.count()
FREE: Final = {
    "schema", "callback", "content", "table", "authentication", "clock", "rng", "logger",
}  # fmt: skip
"""Parameters that anything may be, or that say themselves what they take."""
TOGETHER: Final = (
    "exclude each other", "belong together", "needs a crypto_key_reader", "alone encrypts nothing", "goes with a",
    "not both", "has no effect", "already", "of several topics",
)  # fmt: skip
"""Words of refusals of values that fit by themselves, and not what else was given."""


def parameters_of(method: Callable[..., Any]) -> list[str]:
    found = [
        one.name
        for one in inspect.signature(method).parameters.values()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and one.name not in ("self", *OF_SIMULATIONS)
    ]
    if method.__name__ == "subscribe":
        found += DeliveryParameters.__annotations__
    return found


def public_methods(kind: type) -> Iterator[str]:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if (
            not name.startswith("_")
            and name not in INNER.get(kind.__name__, set())
            and parameters_of(method)
            and method.__module__.startswith("magnetar")
        ):
            yield name


HANDLES: Final = {
    "aio": (aio.Client, aio.Producer, aio.Consumer, aio.Reader, aio.TableView, aio.ClientTransaction),
    "blocking": (
        magnetar.Client, magnetar.Producer, magnetar.Consumer, magnetar.Reader, magnetar.TableView,
        magnetar.ClientTransaction,
    ),
}  # fmt: skip
METHODS: Final = [
    pytest.param(which, kind, name, id=f"{which}.{kind.__name__}.{name}")
    for which, kinds in HANDLES.items()
    for kind in kinds
    for name in public_methods(kind)
]


@dataclass
class Stage:
    """One handle of each kind, on a topic with messages, and a way to call it."""

    broker: PulsarBroker
    runner: asyncio.Runner | None
    client: Any
    open: list[Any] = field(default_factory=list)

    def wait(self, found: Any) -> Any:
        if self.runner is not None and inspect.isawaitable(found):
            return self.runner.run(_awaited(found))
        return found

    def do(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        if self.runner is not None:
            return self.runner.run(_called(method, given, named))
        return method(*given, **named)

    def handle(self, kind: str) -> Any:
        match kind:
            case "Client":
                return self.client
            case "Producer":
                made = self.do(self.client.create_producer, "out", max_pending_messages=0)
            case "Consumer":
                made = self.do(
                    self.client.subscribe, "full", f"s{next(_NUMBERS)}", initial_position=aio.InitialPosition.Earliest,
                    retry_enable=True, dead_letter_policy=aio.ConsumerDeadLetterPolicy(1_000),
                )  # fmt: skip
            case "Reader":
                made = self.do(self.client.create_reader, "full", aio.MessageId.earliest)
            case "TableView":
                made = self.do(self.client.create_table_view, "keys")
            case _:
                made = self.do(self.client.new_transaction)
        self.open.append(made)
        return made

    def required(self, handle: Any, method: str) -> dict[str, Any]:
        """Return arguments that fit."""
        given: dict[str, Any] = {
            "topic": f"of-{method}", "start_message_id": aio.MessageId.earliest,
            "subscription_name": f"x{next(_NUMBERS)}",
            "content": b"x", "callback": lambda *_: None, "messageid": aio.MessageId.earliest,
            "handler": lambda *_: None, "client": self.client, "error": None, "service_url": self.broker.service_url,
        }  # fmt: skip
        names = parameters_of(getattr(handle, method))
        if "message" in names:
            given["message"] = self.do(handle.receive, 5_000)
        if "table" in names:
            given["table"] = self.do(handle.receive_table, 1) if method == "acknowledge_table" else None
        defaults = inspect.signature(getattr(handle, method)).parameters
        needed = {one for one in names if one in defaults and defaults[one].default is inspect.Parameter.empty}
        return {name: given[name] for name in needed}

    def works(self, handle: Any, kind: str) -> None:
        """Assert that a handle does what it is for."""
        match kind:
            case "Client":
                self.close(self.do(handle.create_producer, "out"))
            case "Producer":
                assert self.do(handle.send, b"works").entry_id() >= 0
            case "Consumer":
                self.do(handle.seek, aio.MessageId.earliest)
                message = self.do(handle.receive, 10_000)
                while message.topic_name().endswith("-RETRY"):
                    message = self.do(handle.receive, 10_000)
                assert message.data() == b"0"
                self.do(handle.acknowledge, message)
            case "Reader":
                self.do(handle.seek, aio.MessageId.earliest)
                assert self.do(handle.read_next, 10_000).data() == b"0"
            case "TableView":
                assert handle["k"] == b"v"
            case _:
                self.do(handle.abort)

    def close(self, found: object) -> None:
        if found is not self.client and callable(close := getattr(found, "close", None)):
            self.do(close)


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


async def _called(method: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    found = method(*given, **named)
    return await found if inspect.isawaitable(found) else found


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    # nobody is at its topics between two tests, and on a busy machine that is more than a minute
    settings = {"transactionCoordinatorEnabled": True, "brokerDeleteInactiveTopicsEnabled": False}
    with PulsarBroker(settings=settings) as broker, broker.client() as client:
        producer = client.create_producer("full", batching_enabled=True, block_if_queue_full=True)
        for number in range(3_000):
            producer.send_async(b"%d" % number, None)
        producer.flush()
        client.create_producer("keys").send(b"v", partition_key="k")
        yield broker


@pytest.fixture
def stage(broker: PulsarBroker, which: str) -> Iterator[Stage]:
    if which == "blocking":
        with broker.client() as client:
            yield Stage(broker, None, client)
        return
    with asyncio.Runner() as runner:
        client = runner.run(_called(broker.aio_client, (), {}))
        yield Stage(broker, runner, client)
        runner.run(client.close())


def _told(error: BaseException, name: str) -> bool:
    text = str(error)
    return name in text or any(words in text for words in TOGETHER)


@pytest.mark.parametrize(("which", "kind", "method"), METHODS)
def test_every_parameter_takes_or_refuses_what_is_absurd(stage: Stage, which: str, kind: type, method: str) -> None:
    handle = stage.handle(kind.__name__)
    wrong: list[str] = []
    for name in parameters_of(getattr(handle, method)):
        for value in ABSURD:
            if method == "send_async" and value is asyncio.sleep:
                continue  # Python itself says that it is never awaited
            given = {**stage.required(handle, method), name: value}
            try:
                found = _attempt(stage, handle, method, given)
            except BEFORE_THE_BROKER as error:
                if name not in FREE and not _told(error, name):
                    wrong.append(f"{name}={text_of(value)}: {type(error).__name__}: {error}")
            except ClientTimeoutError:
                assert name == "timeout_millis"
            except ClientError as error:
                if name not in FREE:
                    wrong.append(f"{name}={text_of(value)} came to the broker: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
            else:
                if kind.__name__ == "Client":
                    stage.close(found)
    assert not wrong, "\n".join([f"{len(wrong)} bad refusals:", *wrong])
    if method not in ("close", "unsubscribe"):
        stage.works(handle, kind.__name__)


def _attempt(stage: Stage, handle: Any, method: str, given: dict[str, Any]) -> Any:
    if method in ("run", "run_in_transactions"):
        return _run_and_stop(stage, handle, method, given)
    if method == "unsubscribe":
        handle = stage.handle("Consumer")
    if method in ("batch_receive", "receive_table"):
        stage.do(handle.redeliver_unacknowledged_messages)  # so that there are messages
        given = {"max_wait": 0.01, **given} if method == "receive_table" else given
    return stage.do(getattr(handle, method), **given)


def _run_and_stop(stage: Stage, handle: Any, method: str, given: dict[str, Any]) -> None:
    """Run, and stop as soon as it runs."""
    given = {"handler": lambda *_: handle.stop(), **given}
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.01):
            handle.stop()

    async def run() -> None:
        running = asyncio.ensure_future(handle.run(**given) if method == "run" else handle.run_in_transactions(**given))
        while not running.done():
            handle.stop()
            await asyncio.wait([running], timeout=0.01)
        running.result()

    if stage.runner is not None:
        stage.runner.run(run())
        return
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        getattr(handle, method)(**given)
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("kind", [aio.Client, magnetar.Client], ids=lambda one: one.__module__)
def test_a_client_takes_or_refuses_what_is_absurd(kind: type, recwarn: pytest.WarningsRecorder) -> None:
    """Nothing is connected, and no thread or file is left."""
    before = set(threading.enumerate())
    wrong: list[str] = []
    for name in parameters_of(kind):
        for value in ABSURD:
            try:
                with asyncio.Runner() as runner:
                    client = runner.run(_called(kind, (), {"service_url": "pulsar://127.0.0.1:1", name: value}))
                    runner.run(_called(client.close, (), {}))
            except BEFORE_THE_BROKER as error:
                if name not in FREE and not _told(error, name):
                    wrong.append(f"{name}={text_of(value)}: {type(error).__name__}: {error}")
            except Exception as error:
                wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
    assert not wrong, "\n".join([f"{len(wrong)} bad refusals:", *wrong])
    assert set(threading.enumerate()) <= before, "those of tests before this one may end meanwhile"


@pytest.mark.parametrize(
    "kind",
    [
        aio.ConsumerDeadLetterPolicy, aio.ConsumerBatchReceivePolicy, aio.MultiplierRedeliveryBackoff,
        aio.KeySharedMeta, aio.CryptoKeyReader, aio.Retry, aio.ServiceInfo, aio.AuthenticationBasic,
        aio.AuthenticationTLS, aio.AuthenticationToken, aio.ClientLogin, magnetar.Admin, magnetar.AsyncAdmin,
        aio.TracingConsumerInterceptor, aio.TracingProducerInterceptor,
    ],
)  # fmt: skip
def test_a_policy_takes_or_refuses_what_is_absurd(kind: type) -> None:
    good = {
        "max_redeliver_count": 3,
        "mode": aio.KeySharedMode.AUTO_SPLIT,
        "public_key_path": "x",
        "private_key_path": "x",
        "service_url": "pulsar://host:6650",
        "username": "x",
        "password": "x",
        "certificate_path": "x",
    }
    wrong: list[str] = []
    for name in parameters_of(kind):
        needed = {one: good[one] for one in parameters_of(kind) if one in good}
        for value in ABSURD:
            try:
                kind(**{**needed, name: value})
            except BEFORE_THE_BROKER:
                continue
            except Exception as error:
                wrong.append(f"{name}={text_of(value)}: raw {type(error).__name__}: {error}")
    assert not wrong, "\n".join([f"{len(wrong)} bad refusals:", *wrong])


def test_errors_say_what_was_given_and_what_is_expected(broker: PulsarBroker) -> None:
    with broker.client() as client:
        producer, consumer = client.create_producer("said"), client.subscribe("said", "s")
        for call, words in (
            (lambda: producer.send(b"x", properties={"a": 1}), r"properties: a mapping of texts to texts.*\{'a': 1\}"),  # type: ignore[dict-item]
            (lambda: producer.send(b"x", partition_key=5), r"partition_key: a text or bytes.*not 5"),  # type: ignore[arg-type]
            (lambda: producer.send(b"x", deliver_after=5), r"deliver_after: a timedelta.*not 5"),  # type: ignore[arg-type]
            (lambda: producer.send(b"x", event_timestamp=2**70), r"event_timestamp: a whole number.*not 11805916"),
            (lambda: consumer.receive(-1), r"timeout_millis: a number of milliseconds from 0.*not -1"),
            (lambda: consumer.receive(math.nan), r"timeout_millis: .*not nan"),  # type: ignore[arg-type]
            (lambda: consumer.seek("x"), r"messageid: a MessageId, or milliseconds.*not 'x'"),  # type: ignore[arg-type]
            (lambda: consumer.acknowledge(None), r"message: a message that was received.*not None"),  # type: ignore[arg-type]
            (lambda: client.subscribe([], "s"), r"topic: the name of a topic.*not list \[\]"),
            (lambda: client.subscribe("t", ""), r"subscription_name: a name"),
            (lambda: client.subscribe("x" * 1_000_000, "s"), r"topic: .*a name has at most 4096"),
            (lambda: client.subscribe("t", "s", key_shared_policy=aio.KeySharedMeta("x")), r"key_shared_policy: "),  # type: ignore[arg-type]
            (lambda: client.create_producer("a/b"), r"topic: .*Invalid short topic name"),
            (lambda: client.subscribe("t", "s", message_listener=5), r"message_listener: a plain function"),  # type: ignore[arg-type]
            (lambda: magnetar.Client(None), r"service_url: a URL such as pulsar://host:6650.*not None"),  # type: ignore[arg-type]
            (lambda: magnetar.Client("pulsar://"), r"service_url: .*no host:port"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=words) as told:
                call()
            assert isinstance(told.value, magnetar.InvalidConfiguration) and len(str(told.value)) < 400
