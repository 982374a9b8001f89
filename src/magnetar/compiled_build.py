"""Which build this is: the pure one, or the one whose hot modules mypyc has compiled (docs/decisions/058).

Both come from the same source. The pure build is the reference; the compiled one has a shared library beside each
module of :data:`COMPILED`, which Python imports instead of the source. ``MAGNETAR_BUILD=compiled`` (or ``pure``) has
the broker and the tests refuse to start with the other one; ``python -m magnetar.compiled_build`` says which it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple

from magnetar.model.errors import NotAllowedError

COMPILED: Final = (
    "magnetar.model.hashing",
    "magnetar.model.ordinals",
    "magnetar.model.ordinal_bitmap",
    "magnetar.protocol.varints",
    "magnetar.protocol.frames",
    "magnetar.protocol.hot_commands",
    "magnetar.protocol.alike_commands.layouts",
    "magnetar.protocol.alike_commands.runs",
    "magnetar.protocol.alike_commands.turns",
    "magnetar.protocol.decoder",
    "magnetar.protocol.handmade_frames.receipts",
    "magnetar.protocol.handmade_frames.deliveries",
    "magnetar.protocol.sticky_key",
    "magnetar.protocol.server",
    "magnetar.runtime.distributions",
    "magnetar.storage.log.write_group",
    "magnetar.storage.log.write_latency",
    "magnetar.storage.log.records",
    "magnetar.storage.log.cursor_records",
    "magnetar.storage.log.journal",
    "magnetar.storage.log.segment",
    "magnetar.storage.ledgers.ledger",
    "magnetar.storage.ledgers.ranges",
    "magnetar.storage.ledgers.span_table",
    "magnetar.storage.ledgers.stored_run",
    "magnetar.storage.ledgers.entry_cache",
    "magnetar.storage.ledgers.cursor",
    "magnetar.storage.ledgers.offloadable_ledgers",
    "magnetar.storage.ledgers.trimmable_ledgers",
    "magnetar.storage.ledgers.managed_ledger",
    "magnetar.broker.delivery.consumer_state",
    "magnetar.broker.delivery.ordinal_set",
    "magnetar.broker.delivery.redelivery",
    "magnetar.broker.delivery.permits",
    "magnetar.broker.delivery.entry_holders",
    "magnetar.broker.delivery.instructions",
    "magnetar.broker.delivery.sticky_keys.draining_hashes",
    "magnetar.broker.delivery.sticky_keys.sticky_replay",
    "magnetar.broker.delivery.dispatchers.dispatcher",
    "magnetar.broker.delivery.dispatchers.single_active_consumer",
    "magnetar.broker.delivery.dispatchers.exclusive",
    "magnetar.broker.delivery.dispatchers.failover",
    "magnetar.broker.delivery.dispatchers.multiple_consumers",
    "magnetar.broker.delivery.dispatchers.shared",
    "magnetar.broker.delivery.dispatchers.shared_chunks",
    "magnetar.broker.delivery.dispatchers.key_shared",
    "magnetar.broker.topic.publish.producer",
    "magnetar.broker.topic.publish.producers",
    "magnetar.broker.topic.publish.publish_results",
    "magnetar.broker.topic.publish.write_stats",
    "magnetar.broker.topic.dispatch.consumer",
    "magnetar.broker.topic.dispatch.members",
    "magnetar.broker.topic.dispatch.batch_sizes",
    "magnetar.broker.topic.dispatch.entry_reads",
    "magnetar.broker.topic.dispatch.entry_sender",
    "magnetar.broker.topic.dispatch.pump",
    "magnetar.broker.topic.subscription.acknowledgements",
    "magnetar.broker.connection.bounds.outbox",
    "magnetar.broker.connection.bounds.turns",
    "magnetar.broker.connection.bounds.socket_pauses",
    "magnetar.broker.connection.open_handles",
    "magnetar.broker.connection.session",
    "magnetar.broker.connection.producer_outbox",
    "magnetar.broker.connection.consumer_outbox",
    "magnetar.broker.connection.handlers.send_command",
    "magnetar.broker.connection.handlers.consumer_commands",
)
"""Modules that the compiled build compiles, below before above: those for which it pays (docs/performance.md)."""

WANTED: Final = "MAGNETAR_BUILD"
"""The variable of the environment that says which build has to run."""


class RunningBuild(NamedTuple):
    """The modules of :data:`COMPILED` by what Python imports for them."""

    compiled: tuple[str, ...]
    pure: tuple[str, ...]

    @property
    def kind(self) -> str:
        """``pure``, ``compiled``, or ``mixed``, which no build makes."""
        if self.compiled and self.pure:
            return "mixed"
        return "compiled" if self.compiled else "pure"

    def __str__(self) -> str:
        if self.kind == "mixed":
            return f"mixed build: {len(self.compiled)} modules compiled, {len(self.pure)} not"
        return f"compiled build, {len(self.compiled)} modules" if self.compiled else "pure build"


def running_build() -> RunningBuild:
    """Return what Python imports, or has imported, for the modules that can be compiled."""
    pure = tuple(name for name in COMPILED if (spec := find_spec(name)) is None or (spec.origin or "").endswith(".py"))
    return RunningBuild(tuple(name for name in COMPILED if name not in pure), pure)


def check_build(environment: Mapping[str, str] = os.environ) -> None:
    """Raise NotAllowedError if ``MAGNETAR_BUILD`` asks for another build than this one."""
    wanted = environment.get(WANTED, "")
    if not wanted:
        return
    if wanted not in ("pure", "compiled"):
        raise NotAllowedError(f"{WANTED}={wanted[:40]}: it is pure or compiled, or not set")
    build = running_build()
    if build.kind != wanted:
        spec = find_spec(COMPILED[0])
        where = None if spec is None else spec.origin
        raise NotAllowedError(
            f"{WANTED}={wanted}, but this is the {build} ({COMPILED[0]} is {where}); "
            f"`make compiled` makes the compiled one, in build/compiled/src"
        )


def main() -> None:
    """Print which build runs, and each module with the file that is loaded for it. Raises what check_build does."""
    check_build()
    sys.stdout.write(f"{running_build()}\n")
    for name in COMPILED:
        spec = find_spec(name)
        sys.stdout.write(f"{name} {None if spec is None else spec.origin}\n")


if __name__ == "__main__":
    main()
