"""The workloads run against the sink and notice a broker that cheats."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import report
from benchmarks.load.consume import Order, Verdict, one_line
from benchmarks.load.sink import Sink
from benchmarks.workloads import WORKLOADS, Meter, Outcome, Workload, bare_latency

# the sink knows one consumer for each topic
SINK_WORKLOADS = [one for one in WORKLOADS if one.consumers == 1 and one.name != "latency-1k"]


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield server
    server.stop()
    thread.join(5)


def count_of(workload: Workload) -> int:
    return 2000 if workload.shape.batch == 1 else 60


@pytest.mark.parametrize("workload", SINK_WORKLOADS, ids=lambda one: one.name)
def test_every_workload_passes_its_own_checks(workload: Workload, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = replace(workload, topics=min(workload.topics, 20), window=min(workload.window, 1000))
    monkeypatch.setattr("benchmarks.workloads.REDELIVERY_SECONDS", 0.02)
    outcome = workload.run(workload, sink.address, count_of(workload), Meter())
    assert outcome.problems == []
    assert outcome.remarks == []
    assert outcome.entries == count_of(workload)
    assert outcome.messages == outcome.entries * workload.shape.batch
    assert outcome.payload_bytes == outcome.messages * workload.shape.message_bytes


@pytest.mark.parametrize("name", ["produce-100b", "topics-1000"])
def test_a_sink_with_a_file_syncs_what_it_answers(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.workloads.REDELIVERY_SECONDS", 0.02)
    workload = next(one for one in WORKLOADS if one.name == name)
    workload = replace(workload, topics=min(workload.topics, 20), window=min(workload.window, 1000))
    server = Sink(file=tmp_path / "synced")
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        outcome = workload.run(workload, server.address, 2000, Meter())
    finally:
        server.stop()
        thread.join(5)
    assert outcome.problems == []
    assert server.syncs > 0
    assert server.unsynced == 0
    assert (tmp_path / "synced").stat().st_size >= 2000 * workload.shape.message_bytes


class FakeConsumer:
    """Just what ``Verdict`` looks at."""

    def __init__(self, consumer: int, numbers: list[int], shift: int = 0) -> None:
        array = np.array(numbers, np.int64)
        self._seen = np.full(len(array), consumer, np.int64), array * 0 + 7, array + shift, array
        self.altered = 0
        self.without_checksum = False
        self.arrivals = self
        self.twice = len(numbers) - len(set(numbers))

    def seen(self) -> tuple[object, ...]:
        return self._seen


def verdict(*consumers: FakeConsumer, order: Order) -> Verdict:
    positions = np.full(6, 7, np.int64), np.arange(6, dtype=np.int64)
    return Verdict(list(consumers), positions, order)  # type: ignore[arg-type]  # a stand-in with the same members


STRICT = Order(one_line)
LOOSE = Order(one_line, promised=False)
KEYED = Order(lambda numbers: numbers % 2, one_consumer=True)


def test_what_is_right_passes() -> None:
    assert verdict(FakeConsumer(1, [0, 1, 2, 3, 4, 5]), order=STRICT).problems == []
    assert verdict(FakeConsumer(1, [1, 3, 5]), FakeConsumer(2, [0, 2, 4]), order=KEYED).problems == []


@pytest.mark.parametrize(
    ("consumers", "order", "problem"),
    [
        ([FakeConsumer(1, [0, 1, 2, 4, 5])], STRICT, "entries missing"),
        ([FakeConsumer(1, [0, 1, 2, 4, 3, 5])], STRICT, "messages out of order"),
        ([FakeConsumer(1, [0, 1, 2, 3, 4, 5], shift=1)], STRICT, "message ids differ from the receipts"),
        ([FakeConsumer(1, [1, 3, 5, 0]), FakeConsumer(2, [2, 4])], KEYED, "one key went to two consumers"),
        ([FakeConsumer(1, [1, 5, 3]), FakeConsumer(2, [0, 2, 4])], KEYED, "messages out of order"),
    ],
)
def test_what_is_wrong_is_named(consumers: list[FakeConsumer], order: Order, problem: str) -> None:
    assert verdict(*consumers, order=order).problems == [problem]


def test_shared_promises_no_order_and_repetitions_are_remarked() -> None:
    judged = verdict(FakeConsumer(1, [0, 1, 3, 2, 3, 4, 5]), order=LOOSE)
    assert judged.problems == []
    assert sorted(judged.remarks) == ["1 messages came again unasked", "messages out of order"]


def test_the_disk_alone_has_a_latency_for_each_message(tmp_path: Path) -> None:
    """What came due during a sync shares the next one; nothing is left behind."""
    (workload,) = (one for one in WORKLOADS if one.name == "latency-20k")
    outcome = bare_latency(workload, tmp_path, 500, Meter())
    assert outcome.entries == 500
    assert 0 < outcome.latency_ms["p50"] <= outcome.latency_ms["p99"] <= outcome.latency_ms["max"]
    assert outcome.latency_ms["generator p50"] < outcome.latency_ms["max"]
    assert list(tmp_path.iterdir()) == []


def sample(broker: str, round_: int, rate: float, problems: list[str] | None = None) -> report.Sample:
    outcome = Outcome(int(rate), int(rate), int(rate * 100), 1.0, 0.1, problems or [])
    return report.Sample.of(broker, round_, WORKLOADS[0], outcome, rate * 5e-6, 90_000_000)


@pytest.mark.parametrize("word", ["limit", "bare"], ids=["new", "results of before"])
def test_report_has_medians_ratios_and_leaves_out_void_samples(word: str) -> None:
    about = {"durability": "d", "start_seconds": 1.0, "resident_mb_after_start": 2.0}
    bare = {**about, word: True}
    results = report.Results({"cpus": 2}, {"ours": about, "theirs": about, "others": about, "bare-sync": bare})
    for round_, rate in enumerate((100e3, 300e3, 200e3), 1):
        results.samples += [sample("ours", round_, rate), sample("theirs", round_, rate / 2)]
        results.samples.append(sample("others", round_, rate * 4))
        results.samples.append(sample("bare-sync", round_, rate * 8))
    results.samples.append(sample("theirs", 4, 900e3, ["entries missing"]))
    text = report.text(results)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (row,) = (line for line in cells if line[:2] == ["produce-100b", "ours"])
    assert row[2:7] == ["200.0 k", "100.0 k–300.0 k", "200.0 k", "20", "5.0"]
    (ratio,) = (line for line in cells if line[:2] == ["produce-100b", "rate"])
    assert ratio[2:] == ["2.00", "0.25", "0.12", "0.25"]  # the disk alone is no rival
    assert "theirs, produce-100b: entries missing (round 4)" in text
