"""``magnetar perf``: the set of commands; those of ``pulsar-perf`` that are not built are refused by name."""

from __future__ import annotations

from typing import Final

import typer

from magnetar.cli.perf.consume_command import consume
from magnetar.cli.perf.produce_command import produce
from magnetar.cli.perf.read_command import read
from magnetar.cli.perf.transaction_command import transaction
from magnetar.runtime.command_line import commands, complain

app = commands(
    "Load on a broker, and figures: throughput and latencies, in the format of pulsar-perf.",
    example="Example: magnetar perf produce orders -r 1000 -time 30",
)


@app.callback()
def perf() -> None:
    """Load on a broker, and figures: throughput and latencies, in the format of pulsar-perf."""


app.command()(produce)
app.command()(consume)
app.command()(read)
app.command()(transaction)

REFUSED: Final = {
    "managed-ledger": "it writes to BookKeeper, which magnetar does not have",
    "monitor-brokers": "it watches brokers in ZooKeeper, which magnetar does not have",
    "simulation-client": "it is not built",
    "simulation-controller": "it is not built",
    "websocket-producer": "it is not built; magnetar perf produce uses the binary protocol",
    "gen-doc": "docs/command-line.md is the page",
}
"""Commands of ``pulsar-perf`` that are not here, and why."""


def _refuse(context: typer.Context) -> None:
    name = context.info_name or ""
    complain(f"perf {name} is not here: {REFUSED[name]}")
    raise typer.Exit(1)


for _name in REFUSED:
    app.command(
        _name,
        hidden=True,
        epilog="Example: magnetar perf produce orders -time 30",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )(_refuse)
