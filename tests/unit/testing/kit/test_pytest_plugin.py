"""The pytest plugin, in runs of pytest of its own: fixtures, scopes, seeds, and brokers that were left open."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.plugin_arguments import ARGUMENTS

pytest_plugins = ["pytester"]


def test_fixtures_and_what_goes_wrong(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\npulsar_broker_settings =\n    brokerDeduplicationEnabled = true\nfilterwarnings = default"
    )
    pytester.makepyfile(
        """
        import asyncio
        from magnetar.testing import PulsarBroker

        kept = []

        def test_fresh(pulsar_broker, pulsar_client, pulsar_admin):
            pulsar_client.create_producer("t").send(b"x")
            assert pulsar_admin.topics.list("public/default") == pulsar_broker.topics()
            assert len(pulsar_broker.topics()) == 1

        def test_fresh_again(pulsar_broker, pulsar_aio_client):
            assert pulsar_broker.topics() == []

            async def main():
                async with pulsar_aio_client() as client:
                    producer = await client.create_producer("t")
                    with pulsar_broker.faults.drop_receipt() as fault:
                        await producer.send(b"x")
                    assert fault.hits == 1
                    await pulsar_broker.clock.advance_async(hours=1)

            asyncio.run(main())
            assert pulsar_broker.clock.skipped_seconds >= 3600

        def test_fails(pulsar_broker):
            assert pulsar_broker.topics() == ["no"]

        def test_fails_within_its_own():
            with PulsarBroker(seed=77) as broker:
                assert broker.topics() == ["no"]

        def test_forgets():
            PulsarBroker()
            kept.append(PulsarBroker())
        """
    )
    result = pytester.runpytest_inprocess(*ARGUMENTS)
    result.assert_outcomes(passed=2, failed=3)
    said = result.stdout.str()
    assert re.search(r"seed \d+; to run it again: pytest --pulsar-seed=\d+ '.*::test_fails'", said)
    assert "--pulsar-seed=77 'test_fixtures_and_what_goes_wrong.py::test_fails_within_its_own'" in said
    assert re.search(r"not closed: use `with PulsarBroker\(\) as broker:` at .*\.py:\d+, .*\.py:\d+", said)


def test_a_broker_for_all_tests_with_a_seed(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\npulsar_broker_scope = session")
    pytester.makepyfile(
        """
        import os
        from magnetar.testing import PulsarBroker

        seen = []

        def test_one(pulsar_broker):
            seen.append(pulsar_broker)

        def test_two(pulsar_broker):
            assert seen == [pulsar_broker] and pulsar_broker.seed == 12
            with PulsarBroker() as own:
                assert own.seed == 12
        """
    )
    pytester.runpytest_inprocess(*ARGUMENTS, "--pulsar-seed=12").assert_outcomes(passed=2)
    pytester.makeini("[pytest]\npulsar_broker_scope = test")
    result = pytester.runpytest_inprocess(*ARGUMENTS)
    assert "pulsar_broker_scope: 'test' is not one of function, class" in result.stdout.str()


def test_pytest_starts_without_magnetar() -> None:
    """What every run of pytest imports is next to nothing."""
    program = "import sys, magnetar.testing.kit.pytest_plugin; print([m for m in sys.modules if m[:9] == 'magnetar.'])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    expected = ["magnetar.testing", "magnetar.testing.kit", "magnetar.testing.kit.pytest_plugin"]
    assert said.strip() == str(expected)
