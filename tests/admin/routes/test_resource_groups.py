"""Resource groups over REST: Pulsar's answers, and how a group and its namespaces depend on each other (rule 14.6)."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.model.names import NamespaceName
from magnetar.model.topic_policies import ResourceGroup
from tests.admin.conftest import World
from tests.admin.rest_client import RestClient

GROUPS, OF_NAMESPACE = "/admin/v2/resourcegroups", "/admin/v2/namespaces/ref/main/resourcegroup"
RATES = {"publishRateInMsgs": 100, "publishRateInBytes": -1, "dispatchRateInMsgs": -1, "dispatchRateInBytes": -1}


def refused(rest: RestClient, method: str, path: str, **options: Any) -> tuple[int, str]:
    answer = rest.request(method, path, **options)
    return answer.status_code, answer.json()["reason"]


def test_a_group_is_made_shown_changed_and_deleted(rest: RestClient) -> None:
    assert rest.request("GET", GROUPS).json() == []
    assert refused(rest, "GET", f"{GROUPS}/g") == (404, "ResourceGroup does not exist")
    made = rest.request("PUT", f"{GROUPS}/g", json={"publishRateInMsgs": 100})
    assert (made.status_code, made.content) == (204, b"")
    assert rest.request("GET", f"{GROUPS}/g").json() == RATES
    rest.request("PUT", f"{GROUPS}/g", json={"dispatchRateInBytes": "5", "publishRateInMsgs": None, "unknown": 1})
    assert rest.request("GET", f"{GROUPS}/g").json() == {**RATES, "dispatchRateInBytes": 5}
    rest.request("PUT", f"{GROUPS}/a", json={})
    assert rest.request("GET", GROUPS).json() == ["a", "g"]
    assert rest.request("DELETE", f"{GROUPS}/g").status_code == 204
    assert refused(rest, "DELETE", f"{GROUPS}/g") == (404, "ResourceGroup does not exist")


def test_a_group_that_is_in_use_stays(rest: RestClient) -> None:
    assert refused(rest, "POST", f"{OF_NAMESPACE}/g") == (412, "ResourceGroup does not exist")
    rest.request("PUT", f"{GROUPS}/g", json=RATES)
    unset = rest.request("GET", OF_NAMESPACE)
    assert (unset.status_code, unset.content) == (200, b"")
    assert rest.request("POST", f"{OF_NAMESPACE}/g").status_code == 204
    assert rest.request("GET", OF_NAMESPACE).text == "g", "the bare name"
    assert refused(rest, "DELETE", f"{GROUPS}/g") == (412, "ResourceGroup is in use")
    assert rest.request("GET", f"{GROUPS}/g").json() == RATES
    assert rest.request("DELETE", OF_NAMESPACE).status_code == 204
    assert rest.request("DELETE", f"{GROUPS}/g").status_code == 204


@pytest.mark.parametrize(
    ("body", "status"),
    [({"publishRateInMsgs": 2**31}, 400), ({"publishRateInBytes": 2**63}, 400), ({"publishRateInMsgs": "x"}, 400),
     (None, 400), ([], 400)],
)  # fmt: skip
def test_what_is_no_rate_makes_no_group(rest: RestClient, body: Any, status: int) -> None:
    assert rest.request("PUT", f"{GROUPS}/g", json=body).status_code == status
    assert rest.request("GET", GROUPS).json() == []


def test_names_and_namespaces_that_cannot_be(rest: RestClient) -> None:
    assert refused(rest, "PUT", f"{GROUPS}/g%20h", json={}) == (412, "ResourceGroup name is not valid")
    missing = "/admin/v2/namespaces/ref/missing/resourcegroup"
    for method, path in (("GET", missing), ("POST", f"{missing}/g"), ("DELETE", missing)):
        assert refused(rest, method, path)[0] == 404


def test_topics_learn_of_it_and_of_each_change(own_world: World) -> None:
    rest, resources = own_world.rest, own_world.resources
    assert resources.resource_groups.find("g") is None
    rest.request("PUT", f"{GROUPS}/g", json={"publishRateInMsgs": 7, "dispatchRateInBytes": 2**63 - 1})
    assert resources.resource_groups.find("g") == ResourceGroup("g", (7, -1), (-1, 2**63 - 1))
    rest.request("POST", f"{OF_NAMESPACE}/g")
    assert resources.namespaces.policies(NamespaceName.parse("ref/main"))["resource_group_name"] == "g"
