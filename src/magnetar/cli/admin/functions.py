"""Which function carries out a command that is more than one request; its module is imported when it is called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from magnetar.cli.admin.call import Call

_MODULES: Final = {
    "policy_commands": (
        "resource_quota", "set_backlog_quota", "set_delayed_delivery", "set_offload_policies", "set_offload_threshold",
        "set_schema_autoupdate_strategy", "subscription_dispatch_rate", "offload_threshold",
    ),
    "namespace_commands": (
        "clear_backlog", "create_namespace", "create_tenant", "delete_cluster", "list_clusters",
        "coordinators", "offload_deletion_lag",
        "save_cluster", "split_bundle", "topic_positions", "unload_namespace", "unsubscribe", "update_tenant",
    ),
    "topic_commands": (
        "analyze_backlog", "backlog_size", "compact", "compaction_status", "create_partitioned_topic",
        "create_shadow_topic", "last_message_id", "lookup", "partitioned_metadata",
        "create_subscription", "delete_topics", "expire_messages", "list_topics", "message_id_at", "offload",
        "offload_status", "partitioned_lookup", "partitioned_terminate", "reset_cursor", "terminate",
        "update_subscription_properties", "shadow_source",
    ),
    "message_commands": (
        "examine_message", "get_schema", "message_by_id", "peek_messages", "schema_compatibility", "upload_schema",
    ),
}  # fmt: skip
PLACES: Final = {name: module for module, names in _MODULES.items() for name in names}
"""The module of each function."""


def function_named(name: str) -> Callable[[Call], None]:
    """Return the function that a row of a table names."""
    found: Callable[[Call], None] = getattr(import_module(f"magnetar.cli.admin.{PLACES[name]}"), name)
    return found
