"""A job through spark-submit, which makes the Java process first and gives Python its session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from magnetar.client.lookup import Lookup
from magnetar.jobs import command
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name
from tests.support.live_broker import LiveBroker
from tests.support.numbered_messages import publish_numbers

pytestmark = [pytest.mark.spark, pytest.mark.drivers]
_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_PATIENCE = 240
_QUICK = ("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def test_an_audit_through_spark_submit_has_its_exit_code(broker: LiveBroker, tmp_path: Path) -> None:
    """The command line is that of docs/jobs.md: a producer that starts over is a finding, and the exit code says so."""
    with Lookup(broker.url) as lookup:
        topic, *_ = topic_partitions(lookup, topics_by_name(["submitted"]), create=True)
    publish_numbers(broker.url, 0, 50, topic=topic)
    publish_numbers(broker.url, 60, 70, topic=topic)
    line = [_SUBMIT, "--master", "local[1]", *_QUICK, command.__file__]
    done = subprocess.run(
        [*map(str, line), "audit", "submitted", "--dense", "--url", broker.url],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 1, done.stdout + done.stderr[-4000:]
    assert done.stdout.startswith("submitted: 60 messages of 1 producers: 1 x skipped"), done.stdout
