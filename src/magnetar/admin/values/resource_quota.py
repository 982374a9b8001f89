"""Resource quotas: what a bundle may need of a broker, as Pulsar's load balancer would plan with it."""

from __future__ import annotations

from magnetar.admin.values import coercion
from magnetar.metadata.placement import DEFAULT_QUOTA
from magnetar.model.errors import InvalidValueError
from magnetar.model.policies import JsonObject


def resource_quota(body: JsonObject | None) -> JsonObject:
    """A quota; what is missing is 0, and ``dynamic`` is true. Raises InvalidValueError."""
    if body is None:
        raise InvalidValueError("expected a resource quota with msgRateIn, msgRateOut, bandwidthIn, ..., got nothing")
    quota: JsonObject = {}
    for name, default in DEFAULT_QUOTA.items():
        given = body.get(name)
        if isinstance(default, bool):
            quota[name] = default if given is None else coercion.flag(given, f"true or false as {name}")
        else:
            quota[name] = 0.0 if given is None else coercion.fraction(given, f"a number as {name}")
    return quota
