"""/metrics of very many topics: pieces of bounded work, and sums of namespaces instead of topics."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.admin.routes.metrics.compressed import KeptAnswer
from magnetar.admin.routes.metrics.scrape import scrape
from magnetar.admin.routes.metrics.text_format import LINES_PER_PIECE
from magnetar.admin.routes.metrics.topic_series import TopicSeries
from magnetar.admin.values.counters import SubscriptionCounters, TopicCounters
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import TopicName
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.admin.conftest import world
from tests.admin.fake_broker import FakeBroker
from tests.support.at_once import at_once
from tests.support.loop_turns import turns_of_others


def counters(name: str, number: int, subscriptions: int) -> TopicCounters:
    held = [SubscriptionCounters(f"s{i}", 1, 2, 1, 0, 7, 70, 0.5, 5.0, 0.0, 0.0) for i in range(subscriptions)]
    return TopicCounters(TopicName.parse(name), 1, subscriptions, number, 10, 2.0, 1.0, 30.0, 3.0, 2, 20, 40, held)


def test_the_brokers_own_numbers_stand_under_their_families() -> None:
    made = world(Settings())
    text = made.rest.get("/metrics").text
    for line in (
        'magnetar_tls_handshakes_total{cluster="standalone"} 5',
        'pulsar_broker_lookup{cluster="standalone",quantile="0.5"} NaN',
        'pulsar_broker_lookup_count{cluster="standalone"} 3',
    ):
        assert line + "\n" in text


def test_one_answer_serves_all_who_ask_within_its_time() -> None:
    """metricsBufferResponse keeps an answer for managedLedgerStatsPeriodSeconds, compressed or not."""

    class Counting(FakeBroker):
        asked = 0

        async def counters(self, options: Any) -> Any:
            self.asked += 1
            yield counters(f"a/b/{self.asked}", 1, 0)

    async def texts(kept: bool, pauses: tuple[float, ...]) -> list[str]:
        settings = Settings(metricsBufferResponse=kept, managedLedgerStatsPeriodSeconds=30)
        resources = Resources(MemoryMetadataStore(), settings)
        await resources.ensure_defaults()
        broker = Counting(resources, settings)
        answers = KeptAnswer(settings.managedLedgerStatsPeriodSeconds) if settings.metricsBufferResponse else None
        found = []
        loop = asyncio.get_running_loop()
        now = loop.time
        ahead = 0.0
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(loop, "time", lambda: now() + ahead)
            for pause in pauses:
                ahead += pause
                made = scrape(broker, resources, settings)
                if answers is None:
                    found.append("".join([piece async for piece in made]))
                else:
                    pieces = answers.pieces(lambda: scrape(broker, resources, settings), encoded=False)
                    found.append(b"".join([piece async for piece in pieces]).decode())
        return found

    first, same, later = asyncio.run(texts(True, (0, 29, 2)))
    assert first == same
    assert "a/b/1" in first
    assert "a/b/2" in later
    assert "a/b/1" not in later
    assert len(set(asyncio.run(texts(False, (0, 0))))) == 2


def test_sums_of_namespaces_are_those_of_their_topics() -> None:
    topics = [counters(f"a/b{i % 2}/t{i}", i, i % 3) for i in range(30)]
    every, sums = (
        TopicSeries(Settings(clusterName="c")),
        TopicSeries(Settings(clusterName="c", exposeTopicLevelMetricsInPrometheus=False)),
    )
    for topic in topics:
        list(every.add(topic))
        list(sums.add(topic))
    assert every.sums.all.topics == sums.sums.all.topics == 30
    shown, summed = "".join(every.lines()), "".join(sums.lines())
    assert 'pulsar_in_messages_total{cluster="c",namespace="a/b0",topic="persistent://a/b0/t4"} 4\n' in shown
    assert (
        'pulsar_subscription_back_log{cluster="c",namespace="a/b1",topic="persistent://a/b1/t1",subscription="s0"}'
        in shown
    )
    assert ',topic="' not in summed
    for namespace in (0, 1):
        label = f'{{cluster="c",namespace="a/b{namespace}"}}'
        mine = topics[namespace::2]
        assert f"pulsar_topics_count{label} 15\n" in summed
        assert f"pulsar_in_messages_total{label} {sum(topic.messages_in for topic in mine)}\n" in summed
        assert f"pulsar_subscriptions_count{label} {sum(len(topic.subscriptions) for topic in mine)}\n" in summed
        assert f"pulsar_rate_in{label} 30.0\n" in summed
        assert f"pulsar_average_msg_size{label} 15.0\n" in summed


def test_others_have_a_turn_between_pieces_that_are_small() -> None:
    class Many(FakeBroker):
        async def counters(self, options: Any) -> Any:
            for number in range(10_000):
                yield counters(f"a/b/{number}", number, 0)

    resources = Resources(MemoryMetadataStore(), Settings())
    at_once(resources.ensure_defaults())
    broker = Many(resources)

    async def run() -> None:
        with turns_of_others() as turns:
            pieces = [piece async for piece in scrape(broker, resources, Settings())]
        assert max(piece.count("\n") for piece in pieces) <= LINES_PER_PIECE + 2
        assert turns.count >= 15 * 10_000 / LINES_PER_PIECE

    asyncio.run(run())


def test_a_topic_with_very_many_subscriptions_is_added_in_steps() -> None:
    series = TopicSeries(Settings(clusterName="c"))

    def added() -> int:
        return "".join(series.lines()).count("\npulsar_subscription_back_log{")

    steps = [added() for _ in series.add(counters("a/b/t", 1, 1_000))]
    assert [*steps, added()] == [0, 200, 400, 600, 800, 1_000]


def test_a_setting_leaves_out_the_series_of_topics() -> None:
    made = world(Settings(exposeTopicLevelMetricsInPrometheus=False))
    made.broker.topics[TopicName.parse("ref/main/t")] = {}
    assert ',topic="' not in made.rest.get("/metrics").text


def test_logins_by_their_methods() -> None:
    page = world(Settings()).rest.get("/metrics").text
    assert 'pulsar_authentication_success_total{cluster="standalone",auth_method="token"} 7\n' in page
    assert 'pulsar_authentication_failures_total{cluster="standalone",auth_method="basic"} 1\n' in page
    assert page.count("# TYPE pulsar_authentication_failures_total counter\n") == 1
