"""A check of the names of clusters and of what belongs to them."""

from __future__ import annotations

from typing import Final

from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, PreconditionFailedError

_NAME_MAX: Final = 1024


def require_cluster(resources: Resources, cluster: str) -> None:
    """Raises PreconditionFailedError with Pulsar's text unless there is such a cluster."""
    if not resources.clusters.exists(cluster):
        raise PreconditionFailedError(f"Cluster {cluster} does not exist.")


def member_name(name: str, what: str) -> str:
    """The name of something that belongs to a cluster. Raises InvalidValueError."""
    if not name.strip() or len(name) > _NAME_MAX or not name.isprintable():
        raise InvalidValueError(f"the name of {what} has 1 to {_NAME_MAX} printable characters")
    return name
