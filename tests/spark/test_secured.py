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

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.login import ClientLogin
from magnetar.client.read_position import START
from magnetar.jobs.reader.unit_reader import Access, units
from magnetar.jobs.replay import ReplayRequest, make_plan, replay
from magnetar.jobs.verification.audit import audit as run_audit
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.state.status import topics_of
from tests.spark.numbered_topic import numbers
from tests.support import snippets
from tests.support.declared_pipeline import finish
from tests.support.minted_secrets import kept
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


def test_jobs_log_in_on_both_doors(spark: Any, secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    """A replay with a password from a file: planned over REST and by protocol, read and published by workers."""
    login = ClientLogin(
        auth_plugin="org.apache.pulsar.client.impl.auth.AuthenticationBasic",
        auth_params=f"file:{kept(tmp_path, 'pair', f'app:{secured.password}')}",
        trust=secured.authority.file,
    )
    fill(spark, secured.options("app"), topic, 0, 40)
    with login.lookup(secured.url) as lookup, CheckpointSubscription(lookup, topic, "s") as subscription:
        subscription.hold(START)
    access = Access(url=secured.url, login=login)
    wanted = ReplayRequest("again", topic, "s", f"{topic}-again", None).checked()
    ranges = make_plan(access, login.rest(secured.web), wanted)
    assert replay(spark, access, wanted, ranges) == 40
    assert run_audit(spark, access, units(access, f"{topic}-again")).messages == 40


def test_a_declared_pipeline_logs_in(spark: Any, secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    """A file with references: rows go through, and its checkpoint, manifests and plan have no secret."""
    fill(spark, secured.options("app"), topic, 0, 30)
    kept(tmp_path, "pair", f"app:{secured.password}")
    name = topic.rpartition("/")[2]
    text = f"""
name: {name}
broker:
  service.url: {secured.url}
  auth: {{plugin: org.apache.pulsar.client.impl.auth.AuthenticationBasic, params: "file:{tmp_path}/secrets/pair"}}
  tls: {{trust-certs: "{secured.authority.file}"}}
checkpoint: work
trigger: available-now
dead-letter: {name}-dead
sources:
  numbers: {{topic: {name}, startingOffsets: earliest, value: string}}
sinks:
  out: {{topic: {name}-out}}
"""
    (tmp_path / "p.yaml").write_text(text)
    pipeline = parse(text, str(tmp_path / "p.yaml"))
    assert finish(spark, pipeline).rows_in == 30
    assert [line.partition(":")[0] for line in topics_of(pipeline)] == ["source numbers", "sink out", "dead letters"]
    back = spark.read.format("pulsar").options(**secured.options("app")).option("value", "string")
    assert numbers(back.option("topic", f"{name}-out").load()) == list(range(30))
    assert not list(search_files(tmp_path))


def test_the_snippets_of_the_documents(spark: Any, secured: SecuredBroker, tmp_path: Path) -> None:
    """They run as they stand, but for the address and the paths."""
    place = kept(tmp_path, "password", secured.password).parent
    secured.token_file("etl").rename(place / "token")
    secured.admin().ask("POST", "/admin/v2/namespaces/public/default/permissions/etl", ["produce", "consume"])
    found = {}
    for one in (*snippets.secured("python"), *snippets.secured("yaml")):
        text = one.text.replace("pulsar+ssl://broker.example.com:6651", secured.url)
        text = text.replace("/etc/pulsar/ca.pem", secured.authority.file).replace("/run/secrets", str(place))
        found[one.language, one.line] = text.replace("user: etl", "user: app")
    assert len(found) == 3
    known: dict[str, Any] = {"spark": spark}
    for (language, _), text in found.items():
        if language == "python":
            exec(text, known)
        else:
            assert finish(spark, parse(text, str(tmp_path / "p.yaml"))).rows_in == 3
    assert known["frame"].count() == 3
    with known["access"].lookup() as lookup:
        assert lookup.partition_count("persistent://public/default/measured-copy", create=False) == 0
