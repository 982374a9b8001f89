"""Wrong options are refused by the reader or writer that was given them, before Spark sees them."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.spark import option_guard
from magnetar.spark.data_source import _check_batch, _check_stream
from magnetar.spark.option_guard import FormatChecks
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.sink.update_mode import updates

URL = "pulsar://localhost:6650"


def reader(use: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A chain like pyspark's that counts what reaches Java."""

    class Reader:
        asked = 0

        def format(self, source: str) -> Any:
            return self

        def option(self, key: str, value: Any) -> Any:
            return self

        def options(self, **given: Any) -> Any:
            for key, value in given.items():
                self.option(key, value)
            return self

        def last(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> int:
            if format is not None:
                self.format(format)
            self.options(**options)
            type(self).asked += 1
            return self.asked

    checks = FormatChecks(_check_batch, _check_stream, sink_options, sink_options)
    monkeypatch.setattr(option_guard, "_checks", {"pulsar": checks})
    option_guard.wrap(Reader, "last", use)
    return Reader()


@pytest.mark.parametrize(
    ("use", "options", "told"),
    [
        ("read_stream", {"topic": "t"}, "option 'subscription' is missing"),
        (
            "read_stream",
            {"topic": "t", "startingOfsets": "latest"},
            "'startingOfsets' is not known; did you mean",
        ),
        ("read_stream", {"subscription": "s"}, "exactly one of the options 'topic'"),
        ("read", {"topic": "t", "subscription": "s"}, "'subscription' has no meaning for a batch read"),
        ("write", {"topic": "t", "Subscription": "s"}, "'subscription' has no meaning for a sink"),
        ("write_stream", {"topic": "t", "delivery": "once"}, "option 'delivery' is 'once'"),
    ],
)
def test_a_mistake_never_reaches_spark(
    use: str, options: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for how in range(3):
        given = reader(use, monkeypatch)
        calls = {
            0: lambda given=given: given.format("pulsar").option("service.url", URL).options(**options).last(),
            1: lambda given=given: given.option("service.url", URL).last(format="pulsar", **options),
            2: lambda given=given: given.options(**options).format("pulsar").option("service.url", URL).last(None),
        }
        with pytest.raises(InvalidValueError) as caught:
            calls[how]()
        assert told in str(caught.value)
        assert given.asked == 0


def test_what_is_right_and_what_is_of_others_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given = reader("read_stream", monkeypatch)
    right = given.format("pulsar").option("service.url", URL).option("topic", "t").option("failOnDataLoss", False)
    # The last one counts, whatever its case.
    right = right.option("subscription", None).option("SUBSCRIPTION", "mine").option("MaxPartitions", 3)
    assert right.last() == 1
    assert reader("read_stream", monkeypatch).format("csv").option("heder", "x").last("/p") == 1


def test_updates_go_through_foreach_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    class Writer:
        def format(self, source: str) -> Any:
            return self

        def option(self, key: str, value: Any) -> Any:
            return self

        def options(self, **given: Any) -> Any:
            return self

        def outputMode(self, mode: str) -> Any:
            return self

        def foreachBatch(self, function: Any) -> Any:
            told.append(function)
            return self

        def start(self, path: Any = None, format: Any = None, outputMode: Any = None, **more: Any) -> tuple[Any, ...]:
            return path, format, outputMode, more

    monkeypatch.setattr(
        option_guard, "_checks", {"pulsar": FormatChecks(None, None, sink_options, sink_options, updates)}
    )
    option_guard.wrap(Writer, "start", "write_stream")
    right = {"service.url": URL, "topic": "t", "staging": "/stage", "checkpointLocation": "/c"}
    for started in (
        Writer().format("pulsar").options(**right).outputMode("update").start(),
        Writer().start(None, "pulsar", "Update", **right, queryName="q"),
        Writer().options(**right).start(format="pulsar", outputMode="update"),
    ):
        assert started[:2] == (None, None) and callable(told.pop()) and "topic" not in started[3]
    started = Writer().start(None, "pulsar", "update", **right)
    assert started[3] == {"checkpointLocation": "/c"} and callable(told.pop())
    assert Writer().format("pulsar").options(**right).outputMode("append").start()[0] is None and not told
    with pytest.raises(InvalidValueError, match=r"option staging=<directory>.*'append'\) gives the same rows"):
        Writer().format("pulsar").option("service.url", URL).option("topic", "t").outputMode("update").start()
    for way in ({"delivery": "at-least-once"}, {"repeatable": "true"}):
        Writer().format("pulsar").options(**{"service.url": URL, "topic": "t"}, **way).outputMode("update").start()
        assert callable(told.pop())
