"""The parameters of paths, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from magnetar.admin_api.operation import Parameter

Domain = Literal["persistent", "non-persistent"]


def _named(*parameters: Parameter) -> Mapping[str, Parameter]:
    return MappingProxyType({one.name: one for one in parameters})


PATH_PARAMETERS: Final = _named(
    Parameter("domain", Domain, "Whether the topic is stored.", example="persistent"),
    Parameter("tenant", str, "Name of the tenant.", example="public"),
    Parameter("namespace", str, "Name of the namespace, without its tenant.", example="default"),
    Parameter("topic", str, "Name of the topic, without its namespace; percent-encoded.", example="orders"),
    Parameter("subscription", str, "Name of the subscription; percent-encoded.", example="billing"),
    Parameter("subName", str, "Name of the subscription; percent-encoded.", example="billing"),
    Parameter("cluster", str, "Name of the cluster.", example="standalone"),
    Parameter("bundle", str, "A bundle: two boundaries of the hash space.", example="0x00000000_0x40000000"),
    Parameter("role", str, "Name of the role.", example="billing-service"),
    Parameter("key", str, "Name of the property.", example="team"),
    Parameter("value", str, "Value of the property.", example="payments"),
    Parameter("version", int, "Number of the version, from 0.", example=0),
    Parameter("seconds", int, "Age in seconds.", example=3600),
    Parameter("count", int, "How many messages.", example=10),
    Parameter("position", int, "Which message of the backlog, from 1.", example=1),
    Parameter("timestamp", int, "Time in milliseconds since 1970.", example=1700000000000),
    Parameter("ledger", int, "Id of the ledger.", example=12),
    Parameter("entry", int, "Number of the entry in its ledger.", example=0),
    Parameter("ledgerId", int, "Id of the ledger.", example=12),
    Parameter("entryId", int, "Number of the entry in its ledger.", example=0),
    Parameter("mostSigBits", int, "The first part of the transaction's id.", example=0),
    Parameter("leastSigBits", int, "The second part of the transaction's id.", example=1),
    Parameter("configName", str, "Name of the setting.", example="brokerDeleteInactiveTopicsEnabled"),
    Parameter("configValue", str, "Its value.", example="false"),
    Parameter("domainName", str, "Name of the failure domain.", example="rack-1"),
    Parameter("policyName", str, "Name of the isolation policy.", example="orders-only"),
    Parameter("broker", str, "A broker, host:port.", example="127.0.0.1:8080"),
    Parameter("brokerId", str, "A broker, host:port.", example="127.0.0.1:8080"),
    Parameter("clusterName", str, "Name of the cluster.", example="standalone"),
    Parameter("bookie", str, "A bookie, host:port.", example="127.0.0.1:3181"),
    Parameter("resourcegroup", str, "Name of the resource group.", example="batch"),
    Parameter("group", str, "Name of the anti-affinity group.", example="group-a"),
    Parameter("coordinatorId", int, "Number of the coordinator.", example=0),
    Parameter("partition", int, "Number of the partition, from 0.", example=0),
    Parameter("timeout", int, "Milliseconds that the transaction has been open.", example=60000),
)
"""Every parameter of a path."""
