"""An isolation policy as its route takes it."""

from __future__ import annotations

from typing import Any


def isolation_policy(**changes: Any) -> dict[str, Any]:
    """All namespaces of ref for brokers at 127.*, with these members changed."""
    return {
        "namespaces": ["ref/.*"],
        "primary": ["127.*"],
        "secondary": [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
        **changes,
    }
