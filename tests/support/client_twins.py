"""Which methods and parameters of the clients are not for applications of both."""

from __future__ import annotations

INNER = {
    "Client": {"twin", "wait_closed", "forked"},
    "Producer": {
        *("opened", "message", "enqueue", "send_nowait", "send_many_nowait", "send_with", "send_message"),
        *("room", "grow", "options", "partitions", "forked", "hurry", "join_many", "memory"),
    },
    "Consumer": {
        *("add", "drop", "receive_nowait", "take_many", "acknowledge_many", "redeliver", "has_waiting", "end_of"),
        "waiting_bytes",
        *("lend", "acknowledge_up_to", "options", "take_entries", "has_again", "something", "member_of", "several"),
        *("redeliver_all", "come_again", "awaits_receipts", "forked", "on_demand"),
        *("heard", "deadline", "asks", "moved_by", "place_in", "refuse_sealed"),
    },
    "Reader": {"consumer", "note", "has_read"},
    "TableView": {"opened", "unlisten", "at_close"},
    "ClientTransaction": {"check_use", "beginning", "publishes_to", "watch", "acknowledges"},
}
"""Methods that are called on the loop only: parts of the client itself, and what must not be awaited."""
OF_SIMULATIONS = {"clock", "rng", "dial", "opening_timeout_seconds", "bounds", "for_threads"}
"""Parameters of the asyncio client for simulations and for a broker's own client, which have no thread."""
