"""Source and sink at a broker with TLS, tokens and grants: references travel, secrets do not, tokens expire."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # publishes no types
from pyspark.errors import PySparkException

from magnetar.model.errors import InvalidValueError
from tests.spark.numbered_topic import numbers
from tests.support.secret_search import search_files, secrets_in
from tests.support.secured_broker import SecuredBroker, secured_broker

pytestmark = pytest.mark.spark
NAMES = itertools.count()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as started:
        yield started


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/secured-{next(NAMES)}"


def fill(spark: Any, options: dict[str, str], topic: str, first: int, last: int) -> None:
    frame = spark.range(first, last).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("pulsar").options(**options).option("topic", topic).mode("append").save()


def test_a_stream_goes_on_while_its_tokens_expire(
    spark: Any, secured: SecuredBroker, topic: str, tmp_path: Path
) -> None:
    """Out of one topic and into another, on executors that read the token again; plan and checkpoint have none."""
    options = secured.options("app")
    read = spark.readStream.format("pulsar").options(**options).option("topic", topic).option("value", "string")
    read = read.option("subscription", "s").option("startingOffsets", "earliest").option("metadata", "none")
    life, rounds = 2.0, 0
    with secured.rotating("app", life):
        fill(spark, options, topic, 0, 50)
        write = read.load().writeStream.format("pulsar").options(**options).option("topic", f"{topic}-copy")
        write = write.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = write.trigger(processingTime="200 milliseconds").start()
        try:
            end = time.monotonic() + 2 * life
            while time.monotonic() < end:
                rounds += 1
                fill(spark, options, topic, 50 * rounds, 50 * rounds + 50)
            query.processAllAvailable()
            plan = query._jsq.explainInternal(True) + query._jsq.lastProgress().json()
        finally:
            query.stop()
    back = spark.read.format("pulsar").options(**options).option("topic", f"{topic}-copy").option("value", "string")
    copied = back.load()
    assert numbers(copied) == list(range(50 * rounds + 50))
    assert not secrets_in((plan + copied._jdf.queryExecution().toString()).encode())
    assert not list(search_files(tmp_path / "checkpoint"))


def test_an_inline_secret_is_refused_before_spark_has_a_plan(spark: Any, secured: SecuredBroker, topic: str) -> None:
    minted = secured.token("app")
    options = {**secured.options("app"), "topic": topic, "pulsar.client.authParams": f"token:{minted}"}
    with pytest.raises(InvalidValueError, match="authParams must be a reference to a secret, env:NAME") as info:
        spark.read.format("pulsar").options(**options).load()
    assert minted not in str(info.value)


def test_a_task_that_is_refused_names_the_reference_and_the_grant(
    spark: Any, secured: SecuredBroker, topic: str
) -> None:
    for role, life, problem in (
        ("stranger", 60.0, f"grant it with: pulsar-admin topics grant-permission {topic} --role ROLE --actions"),
        ("late", -60.0, "Failed to authenticate; this client shows the token from file:"),
    ):
        options = secured.options(role)
        path = secured.token_file(role, life)
        with pytest.raises((PySparkException, Py4JJavaError)) as info:
            fill(spark, options, topic, 0, 1)
        assert problem in str(info.value)
        assert path.read_text() not in str(info.value)


def test_each_process_runs_the_program_that_prints_a_token(spark: Any, secured: SecuredBroker, topic: str) -> None:
    minted = secured.token("app")
    options = {"service.url": secured.url, "pulsar.client.tlsTrustCertsFilePath": secured.authority.file}
    options["token"] = f"command:cat {secured.token_file('app')}"
    fill(spark, options, topic, 0, 5)
    back = spark.read.format("pulsar").options(**options).option("topic", topic).option("value", "string").load()
    assert numbers(back) == list(range(5))
    assert minted not in back._jdf.queryExecution().toString()
