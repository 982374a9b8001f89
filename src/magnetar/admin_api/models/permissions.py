"""Permissions, and why something is or is not permitted."""

from __future__ import annotations

from typing import Literal

from magnetar.admin_api.models.record import ApiModel

AuthAction = Literal["produce", "consume", "functions", "sources", "sinks", "packages"]


class GrantTopicPermission(ApiModel):
    """What a role is granted on a topic."""

    topic: str
    """Its full name."""
    role: str
    actions: list[AuthAction]


class RevokeTopicPermission(ApiModel):
    """Whose grants on a topic are taken back."""

    topic: str
    """Its full name."""
    role: str


class AccessExplanation(ApiModel):
    """One of the rights that are asked for."""

    access: str = ""
    allowed: bool = False
    reason: str = ""
    remedy: str = ""
    """The command that would allow it; empty if it is allowed, or if you may not know."""


class PermissionExplanation(ApiModel):
    """Whether a role may do something, and why."""

    role: str = ""
    operation: str = ""
    allowed: bool = False
    reason: str = ""
    remedy: str = ""
    """What would change it, or whom to ask."""
    note: str = ""
    accesses: list[AccessExplanation] = []
