"""Figures: latencies and their file, the lines of a report, rates held in virtual time, topics and payloads."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # it carries no types
from hdrh.log import HistogramLogReader  # type: ignore[import-untyped]

from magnetar.cli.perf.consumer_load import ConsumerLoad, ConsumerPlan
from magnetar.cli.perf.latencies import HistogramFile, Latencies
from magnetar.cli.perf.payloads import delay_range, payloads
from magnetar.cli.perf.producer_load import ProducerLoad, ProducerPlan
from magnetar.cli.perf.topics import topic_names
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError
from magnetar.testing.simloop import SimLoop, run_in

LINES = (
    "Throughput produced: N msg --- F msg/s --- F Mbit/s  --- failure F msg/s --- Latency: mean: F ms - med: F - "
    "95pct: F - 99pct: F - 99.9pct: F - 99.99pct: F - Max: F",
    "Aggregated throughput stats --- N records sent --- F msg/s --- F Mbit/s ",
    "Aggregated latency stats --- Latency: mean: F ms - med: F - 95pct: F - 99pct: F - 99.9pct: F - 99.99pct: F - "
    "99.999pct: F - Max: F",
)
"""As `pulsar-perf` 4.0.8 printed them; F is a number with a fraction, N one without, padded with blanks."""


def line(form: str) -> re.Pattern[str]:
    found = re.escape(form).replace("\\ ", " ")
    return re.compile(re.sub(r" N\b", r" +\\d+", re.sub(r" F\b", r" +\\d+\\.\\d+", found)) + r"\Z")


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [one.partition(" perf - ")[2] for one in capsys.readouterr().out.splitlines()]


def test_latencies() -> None:
    one = Latencies(1_000)
    for value in (1_000, 2_000, 3_000, 10_000_000_000_000):
        one.record(value)
    first = one.interval()
    assert first.get_total_count() == 4 and one.in_ms(first, 50.0) == pytest.approx(2.0, rel=0.001)
    one.record(5_000)
    assert one.interval().get_total_count() == 1
    assert one.total().get_total_count() == 5
    assert one.in_ms(one.total(), 100.0) == pytest.approx(10 * 86_400 * 1_000.0, rel=0.001)
    assert one.mean_ms(one.interval()) == 0.0


def test_the_file_is_what_other_tools_read(tmp_path: Path) -> None:
    path = tmp_path / "h.hlog"
    path.write_text("of another test")
    log, one = HistogramFile(str(path)), Latencies(1_000)
    assert path.read_text() == "of another test", "until this one begins"
    log.begin()
    for values in ((100, 200, 300), (5_000,)):
        for value in values:
            one.record(value)
        log.add(one.interval())
    reader = HistogramLogReader(str(path), HdrHistogram(1, 10 * 86_400 * 1_000_000, 3))
    counts = []
    while (found := reader.get_next_interval_histogram()) is not None:
        counts.append((found.get_total_count(), found.get_max_value() // 100))
    reader.close()
    assert counts == [(3, 3), (1, 50)]
    assert path.read_text().startswith("#[Histogram log format version 1.3]\n")


class FakeProducer:
    """Confirms each message 5 ms later; refuses what is beyond its queue."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.sent: list[float] = []

    def message(self, content: bytes, **more: Any) -> OutgoingMessage:
        return OutgoingMessage(content, key=more.get("partition_key"))

    def send_with(self, _: OutgoingMessage, token: Any) -> None:
        self.sent.append(self._loop.time())
        self._loop.call_later(0.005, token.set_result, None)

    async def flush(self) -> None:
        await asyncio.sleep(0.01)


class FakeClient:
    """Opens one producer."""

    def __init__(self, loop: SimLoop) -> None:
        self.producer = FakeProducer(loop)

    async def create_producer(self, *_: Any, **__: Any) -> FakeProducer:
        return self.producer


def plan(rate: float, messages: int) -> ProducerPlan:
    return ProducerPlan(
        topics=["t"], producers=1, rate=rate, messages=messages, payloads=[b"x" * 10], warm_up=0.0, options={}
    )


@pytest.mark.parametrize(("rate", "seconds"), [(10, 10), (1_000, 10), (50_000, 1)])
def test_a_rate_is_held(rate: int, seconds: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Within 2 %, and evenly; latencies are those of the messages."""
    loop = SimLoop(1)
    client, load = FakeClient(loop), ProducerLoad(plan(rate, rate * seconds))

    async def drive() -> None:
        (work,) = await load.prepare([client])  # type: ignore[list-item]  # it is one as far as is needed
        await work

    run_in(loop, drive())
    sent = client.producer.sent
    assert load.sent == len(sent) == rate * seconds
    assert (sent[-1] - sent[0]) == pytest.approx(seconds, rel=0.02, abs=1.5 / rate)
    halfway = sum(one - sent[0] < seconds / 2 for one in sent)
    assert halfway == pytest.approx(len(sent) / 2, rel=0.02, abs=1)
    assert load.latencies.in_ms(load.latencies.total(), 99.0) == pytest.approx(5.0, abs=1.5)
    load.report(10.0)
    load.conclude(10.0)
    lines = said(capsys)[-3:]
    assert [bool(line(form).match(one)) for form, one in zip(LINES, lines, strict=True)] == [True] * 3, lines


def test_lines_of_consumers(capsys: pytest.CaptureFixture[str]) -> None:
    async def report() -> None:
        for subscriptions in (["s"], []):
            load = ConsumerLoad(ConsumerPlan(topics=["t"], subscriptions=subscriptions))
            load.received, load.received_bytes, load.acknowledged = 20, 2_000, 20
            load.latencies.record(7)
            load.report(10.0)
            load.conclude(10.0)

    asyncio.run(report())
    whole = (
        "Aggregated latency stats --- Latency: mean: 7.000 ms - med: 7 - 95pct: 7 - 99pct: 7 - 99.9pct: 7 - "
        "99.99pct: 7 - 99.999pct: 7 - Max: 7"
    )
    figures = "Latency: mean: 7.000 ms - med: 7 - 95pct: 7 - 99pct: 7 - 99.9pct: 7 - 99.99pct: 7 - Max: 7"
    assert said(capsys) == [
        f"Throughput received:      20 msg --- 2.000  msg/s --- 0.002 Mbit/s  --- {figures}",
        "Aggregated throughput stats --- 20 records received --- 2.000 msg/s --- 0.002 Mbit/s --- AckRate: 2.000  "
        "msg/s --- ack failed 0 msg",
        whole,
        f"Read throughput:      20 msg --- 2.000 msg/s --- 0.002 Mbit/s --- {figures}",
        "Aggregated throughput stats --- 20 records received --- 2.000 msg/s --- 0.002 Mbit/s",
        whole,
    ]  # fmt: skip


def test_topics_and_payloads(tmp_path: Path) -> None:
    assert topic_names(["a", "b"], 2) == ["a", "b"]
    assert topic_names(["a"], 3) == [f"persistent://public/default/a-{number}" for number in range(3)]
    for given, count in ((["a", "b"], 3), (["a"], 0)):
        with pytest.raises(InvalidValueError):
            topic_names(given, count)
    (letters,) = payloads(50, None, "")
    assert len(letters) == 50 and letters.isalpha()
    file = tmp_path / "p"
    file.write_text("a;b\nc")
    assert payloads(1, str(file), "\\n") == [b"a;b", b"c"] and payloads(1, str(file), ";") == [b"a", b"b\nc"]
    (tmp_path / "raw").write_bytes(b"\xff")
    for absurd in ((-1, None, ""), (1 << 40, None, ""), (1, str(file), ""), (1, str(tmp_path / "raw"), ";")):
        with pytest.raises(InvalidValueError):
            payloads(*absurd)
    assert delay_range("5,10", 0) == (5, 10) and delay_range(None, 3) == (3, 3)
    for text in ("5", "10,5", "a,b"):
        with pytest.raises(InvalidValueError, match="delay-range"):
            delay_range(text, 0)
