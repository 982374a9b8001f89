"""What ``?applied=true`` answers: the level that decides, whichever it is (rule 8.4).

Apache Pulsar 4.0.8 leaves a topic's global policies out unless ``isGlobal`` asks for them (docs/differences.md).
"""

from __future__ import annotations

from magnetar.admin.routes.topics.topic_policies import POLICIES
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from tests.admin.conftest import world
from tests.admin.fake_broker import FakeBroker
from tests.admin.rest_client import RestClient
from tests.support.at_once import at_once
from tests.support.policy_bodies import NEVER_APPLIED, RATE, VALUES

NAMESPACE = "/admin/v2/namespaces/ref/main"
TOPIC = "/admin/v2/persistent/ref/main/t"
NAME = TopicName.parse("persistent://ref/main/t")


def test_what_is_global_is_applied_to_the_topic(rest: RestClient, broker: FakeBroker) -> None:
    """Whether or not a policy has an effect here; a local one is no part of what holds without it."""
    broker.topics = {NAME: {}}
    for policy in sorted(POLICIES.keys() - NEVER_APPLIED - {"offloadPolicies", "replication"}):
        value = VALUES.get(policy, 5)
        path, query = f"{TOPIC}/{policy}", f"&messageTTL={value}" if policy == "messageTTL" else ""
        unset = rest.get(path + "?applied=true").json()
        assert rest.request(POLICIES[policy].method, f"{path}?a=b{query}", json=value).status_code == 204
        assert rest.get(path + "?isGlobal=true&applied=true").json() == unset, policy
        assert rest.delete(TOPIC + "/policies").status_code == 204
        changed = rest.request(POLICIES[policy].method, f"{path}?isGlobal=true{query}", json=value)
        assert changed.status_code == 204, policy
        for asked in ("applied=true", "isGlobal=true", "isGlobal=true&applied=true"):
            assert rest.get(f"{path}?{asked}").json() == value, (policy, asked)
        assert rest.delete(TOPIC + "/policies").status_code == 204


def test_global_replication_and_a_subscriptions_rate_are_applied(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics = {NAME: {}}
    at_once(broker.resources.topic_policies.update(NAME, "replication", ["far"], is_global=True))
    assert rest.get(TOPIC + "/replication?applied=true").json() == ["far"]
    unset = rest.get(TOPIC + "/s/dispatchRate?applied=true").json()
    assert rest.post(TOPIC + "/s/dispatchRate", json=RATE).status_code == 204
    assert rest.get(TOPIC + "/s/dispatchRate?isGlobal=true&applied=true").json() == unset
    assert rest.post(TOPIC + "/s/dispatchRate?isGlobal=true", json={**RATE, "ratePeriodInSecond": 2}).status_code == 204
    assert rest.delete(TOPIC + "/s/dispatchRate").status_code == 204
    assert rest.get(TOPIC + "/s/dispatchRate?applied=true").json() == {**RATE, "ratePeriodInSecond": 2}


def test_a_local_quota_is_no_part_of_the_global_ones(rest: RestClient, broker: FakeBroker) -> None:
    broker.topics = {NAME: {}}
    unset = rest.get(TOPIC + "/backlogQuotaMap?applied=true").json()
    quota = {"limitSize": 1 << 20, "limitTime": -1, "policy": "consumer_backlog_eviction"}
    assert rest.post(TOPIC + "/backlogQuota", json=quota).status_code == 204
    assert rest.get(TOPIC + "/backlogQuotaMap?isGlobal=true&applied=true").json() == unset


def test_the_brokers_setting_is_applied_to_schema_validation() -> None:
    """As Apache Pulsar 4.0.8 answers; without ``applied`` a namespace and a topic show their own."""
    for enforced in (False, True):
        own = world(Settings(isSchemaValidationEnforced=enforced))
        own.broker.topics = {NAME: {}}
        for place in (NAMESPACE, TOPIC):
            path = place + "/schemaValidationEnforced"
            assert own.rest.get(path).json() is False
            assert own.rest.get(path + "?applied=true").json() is enforced
        assert own.rest.post(NAMESPACE + "/schemaValidationEnforced", json=True).status_code == 204
        for place in (NAMESPACE, TOPIC):
            assert own.rest.get(place + "/schemaValidationEnforced?applied=true").json() is True
