"""Figures of the process and of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from magnetar.runtime.host_load import HostLoad
from magnetar.runtime.process_figures import process_figures


def proc(folder: Path) -> Path:
    (folder / "self" / "fd").mkdir(parents=True)
    for number in range(3):
        (folder / "self" / "fd" / str(number)).touch()
    fields = ["S"] + ["0"] * 18 + ["200", "4096000", "25"] + ["0"] * 10
    (folder / "self" / "stat").write_text(f"1 (a (strange) name) {' '.join(fields)}\n")
    (folder / "stat").write_text("cpu 1 2\nbtime 1000\n")
    return folder


def test_the_fields_of_proc(tmp_path: Path) -> None:
    found = process_figures(proc(tmp_path))
    assert found["process_virtual_memory_bytes"] == 4_096_000
    assert found["process_resident_memory_bytes"] == 25 * os.sysconf("SC_PAGE_SIZE")
    assert found["process_start_time_seconds"] == 1000 + 200 / os.sysconf("SC_CLK_TCK")
    assert found["process_open_fds"] == 3
    assert found["process_cpu_seconds"] > 0


def test_a_system_without_proc_has_none(tmp_path: Path) -> None:
    assert process_figures(tmp_path) == {}


def test_this_process_is_there() -> None:
    found = process_figures()
    assert found["process_resident_memory_bytes"] > 1 << 20
    assert 0 < found["process_open_fds"] <= found["process_max_fds"]


def test_the_load_of_the_host_since_the_last_look(tmp_path: Path) -> None:
    counters = tmp_path / "eth0" / "statistics"
    counters.mkdir(parents=True)
    (tmp_path / "lo").mkdir()
    for word in ("rx_bytes", "tx_bytes"):
        (counters / word).write_text("1000")
    host = HostLoad(tmp_path)
    (counters / "rx_bytes").write_text("9000")
    found = host.look()
    assert found["bandwidthIn"].usage > 0
    assert found["bandwidthOut"].usage == 0
    assert 0 < found["memory"].usage < found["memory"].limit
    assert found["cpu"].limit == 100 * (os.cpu_count() or 1)


def test_a_network_that_nobody_may_look_at_counts_nothing(tmp_path: Path) -> None:
    assert HostLoad(tmp_path / "nothing").look()["bandwidthIn"].usage == pytest.approx(0)
