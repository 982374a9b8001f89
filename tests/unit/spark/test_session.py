"""What Java is told when a session for hours is made."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]  # publishes no types
from pyspark import SparkContext, java_gateway
from pyspark.errors import PySparkRuntimeError

from magnetar.model.errors import InvalidValueError, ServiceNotReadyError
from magnetar.spark import session
from magnetar.spark.session import JAVA_OPTIONS, end_session, lasting

SERIAL = "-XX:+UseSerialGC"


@pytest.mark.parametrize("memory", ["512m", "1g", "2G", "2048m", "2048", "2097152k", "1gb"])
def test_a_small_heap_is_collected_by_one_thread(memory: str) -> None:
    assert SERIAL in lasting(memory)[JAVA_OPTIONS]


@pytest.mark.parametrize("memory", ["3g", "2049m", "1t", "", "much"])
def test_any_other_as_java_chooses(memory: str) -> None:
    assert SERIAL not in lasting(memory)[JAVA_OPTIONS]


@pytest.mark.parametrize("memory", ["1g", "8g"])
def test_the_java_here_takes_the_options(memory: str) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no Java here")
    words = [java, *shlex.split(lasting(memory)[JAVA_OPTIONS]), "-XX:+PrintFlagsFinal", "-version"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    values = {line.split()[1]: line.split()[3] for line in told.splitlines() if " = " in line}
    assert (values["Tier4InvocationThreshold"], values["Tier4BackEdgeThreshold"]) == ("25000", "200000")
    assert values["Tier3InvocationThreshold"] == "200", "the quick compiler is as early as ever"


@pytest.mark.parametrize("memory", ["1x", "1gb", "2048", "400m", "", "-1g", "9" * 30 + "g"])
def test_memory_that_java_or_spark_refuses_is_named_before_java_starts(memory: str) -> None:
    """It was a traceback of pyspark, or of Java's part of Spark."""
    with pytest.raises(InvalidValueError, match=r"is no memory for Spark's Java process .*write 800m or 2g"):
        session.local_session("a test", memory=memory)
    with pytest.raises(InvalidValueError, match="is no memory"):
        session.local_session("a test", settings={"spark.driver.memory": memory})


def test_java_that_ends_as_it_starts_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with more memory than the machine gives; pyspark's error is a traceback that names no setting."""

    def ended(*_: object) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(java_gateway, "launch_gateway", ended)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    for name in ("check_java", "explain_failed_start"):
        monkeypatch.setattr(session, name, lambda: None)
    monkeypatch.setattr(session, "started", lambda _: None)
    with pytest.raises(ServiceNotReadyError, match="Spark's Java ended as it started, with 900g of memory"):
        session.local_session("a test", memory="900g", deaf=True)


class DyingSession:
    """A session whose Java does not answer any more."""

    def stop(self) -> None:
        raise Py4JNetworkError("Answer from Java side is empty")


class Gateway:
    """What pyspark has of its Java, whose process is another one here."""

    def __init__(self, command: str) -> None:
        self.proc = subprocess.Popen([command], stdin=subprocess.PIPE)

    def shutdown(self) -> None:
        """Nothing listens."""


@pytest.mark.parametrize("command", ["true", "cat"], ids=["Java has ended", "Java is about to end"])
def test_a_session_whose_java_is_gone_ends_and_another_can_begin(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway: Any = Gateway(command)
    ended: list[str] = []
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        monkeypatch.setattr(SparkContext, name, gateway)
    monkeypatch.setattr(session, "end", lambda: ended.append("fork server"))
    if command == "true":
        gateway.proc.wait(60)
    dying: Any = DyingSession()
    end_session(dying)
    assert (SparkContext._gateway, SparkContext._jvm, SparkContext._active_spark_context) == (None, None, None)
    assert ended == ["fork server"] and gateway.proc.returncode == 0
    end_session(dying)


def test_ctrl_c_stays_what_it_was() -> None:
    """pyspark's own handler asks Java while an answer may be half read: Ctrl-C in a job was a traceback of py4j."""
    before = signal.getsignal(signal.SIGINT)
    with session.ctrl_c_kept():
        signal.signal(signal.SIGINT, lambda *_: None)
    assert signal.getsignal(signal.SIGINT) is before
