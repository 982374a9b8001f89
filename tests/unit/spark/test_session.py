"""What Java is told when a session for hours is made."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from magnetar.spark.session import JAVA_OPTIONS, lasting

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
