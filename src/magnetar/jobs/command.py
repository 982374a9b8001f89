"""``magnetar jobs``: maintenance of topics with Spark; this file can also be given to spark-submit (docs/jobs.md)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from magnetar.contexts.flags import ClientConfFile, Context, ServiceUrl, Token, login
from magnetar.jobs.broker_flags import (
    JobWebUrl,
    WebUrlOfDirectory,
    access,
    access_of,
    broker,
    rest_of_directory,
)
from magnetar.jobs.results import check_file, show, write_rows
from magnetar.jobs.session import CLEAN, FOUND, errors_reported, session
from magnetar.runtime.command_line import commands, directory, file_name

app = commands(
    "Maintenance jobs on Spark: local, or through spark-submit.",
    example="Example: magnetar jobs audit orders --data data",
)


@app.callback()
def jobs() -> None:
    """Maintenance jobs on Spark: local, or through spark-submit."""
    # PySpark would say it of every job; and spark-submit mixes standard error into the result
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


Data = Annotated[
    Path | None,
    typer.Option(
        parser=directory,
        help="The broker's data directory: sealed ledgers are read from there, whether it runs or not.",
    ),
]
Cores = Annotated[int, typer.Option(help="Of the local Spark session.", min=1)]
Memory = Annotated[str, typer.Option(help="Of the local Spark session's Java process.")]
Out = Annotated[
    Path | None,
    typer.Option(parser=file_name, help="Write the result there too: FILE.json or FILE.parquet.", metavar="FILE"),
]


Patience = Annotated[float, typer.Option(help="Seconds that the broker may take to answer.", min=0)]


@app.command(epilog="Example: magnetar jobs audit orders --url pulsar://localhost:6650 --data data")
def audit(
    topic: Annotated[str, typer.Argument(help="A topic; all its partitions are looked at.")],
    url: ServiceUrl = None,
    data: Data = None,
    dense: Annotated[bool, typer.Option("--dense", help="Ids that a producer left out are findings as well.")] = False,
    out: Out = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    patience: Patience = 30.0,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Look for gaps, repetitions, damage and messages out of order; exit 1 if there are any."""
    from magnetar.jobs.reader.unit_reader import check_directory, units
    from magnetar.jobs.verification.audit import AuditFinding
    from magnetar.jobs.verification.audit import audit as run_audit

    with errors_reported():
        check_file(out)
        way = access_of(url, data, token, client_conf, context, patience)
        found = units(way, topic, least=cores)
        check_directory(way, found)
        with session("audit", cores, memory) as spark:
            result = run_audit(spark, way, found, dense=dense)
        if out is not None:
            summary = {"messages": result.messages, "producers": result.producers, "counts": result.counts}
            write_rows(out, AuditFinding, result.findings, {"job": "audit", "topic": topic, **summary})
    names = ("kind", "topic", "at", "until", "producer", "id", "messages", "what")
    counts = ", ".join(f"{count} x {kind}" for kind, count in sorted(result.counts.items())) or "nothing wrong"
    show(f"{topic}: {result.messages} messages of {result.producers} producers: {counts}", names, result.findings)
    raise typer.Exit(FOUND if result.counts else CLEAN)


@app.command(
    epilog="Example: magnetar jobs offload orders --admin-url http://localhost:8080 --data data --to "
    "file:///mnt/lake/offload --dry-run"
)
def offload(
    topics: Annotated[list[str], typer.Argument(help="Topics; all their partitions are looked at.")],
    data: Annotated[Path, typer.Option(parser=directory, help="The broker's data directory, as the workers reach it.")],
    admin_url: WebUrlOfDirectory = None,
    to: Annotated[str | None, typer.Option(help="The broker's offloadUrl as the workers reach it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Copy sealed ledgers to the broker's offloadUrl and have them adopted; exit 1 if any was refused."""
    from magnetar.jobs import offload as job

    left_out = "the ledgers that the broker has not adopted are as they were; the same command copies them"
    with errors_reported("nothing was changed" if dry_run else left_out):
        work, left = job.plan(rest_of_directory(admin_url, token, client_conf, context), data, topics, to)
        done: list[job.CopyOutcome] = []
        if work and not dry_run:
            try:
                with session("offload", cores, memory) as spark:
                    done = job.offload(spark, work)
            except KeyboardInterrupt:
                job.clear(work)
                raise
    rows = [*(job.planned(work) if dry_run else done), *left]
    refused = sum(bool(one.refused) for one in rows)
    ready = [one for one in rows if not one.refused]
    size = sum(one.bytes for one in ready) / 1e6
    what = "to copy" if dry_run else "offloaded"
    show(f"{len(ready)} ledgers of {size:.1f} MB {what}, {refused} left", job.CopyOutcome._fields, rows)
    raise typer.Exit(FOUND if refused else CLEAN)


@app.command(epilog="Example: magnetar jobs compact orders --admin-url http://localhost:8080 --data data")
def compact(
    topic: Annotated[str, typer.Argument(help="A topic without partitions, or one partition.")],
    data: Annotated[Path, typer.Option(parser=directory, help="The broker's data directory, as the workers reach it.")],
    admin_url: WebUrlOfDirectory = None,
    to: Annotated[str | None, typer.Option(help="The broker's offloadUrl as the workers reach it.")] = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Compact a large topic; the broker takes the result over as if it had been its own run."""
    from magnetar.jobs.compaction import job

    with errors_reported(f"{topic} is as it was, unless the broker has the result already"):
        plan = job.plan(rest_of_directory(admin_url, token, client_conf, context), data, topic, to)
        done: list[job.CompactionResult] = []
        if plan is not None:
            try:
                with session("compact", cores, memory) as spark:
                    done.append(job.compact(spark, plan))
            except KeyboardInterrupt:
                job.clear(plan)
                raise
    title = "compacted" if done else "nothing to do: all closed ledgers are compacted"
    show(f"{topic}: {title}", job.CompactionResult._fields, done)


@app.command(epilog="Example: magnetar jobs compare orders pulsar://one:6650 orders pulsar://two:6650 --by content")
def compare(
    topic_a: Annotated[str, typer.Argument(help="One topic, with all its partitions.")],
    url_a: Annotated[str, typer.Argument(help="Its broker, pulsar://host:port; - for only --data-a.")],
    topic_b: Annotated[str, typer.Argument(help="The other topic.")],
    url_b: Annotated[str, typer.Argument(help="Its broker; - for only --data-b.")],
    by: Annotated[str, typer.Option(help="Match messages by producer (and sequence id) or by content.")] = "producer",
    data_a: Data = None,
    data_b: Data = None,
    out: Out = None,
    token_a: Annotated[str | None, typer.Option(help="--token for the first broker.", metavar="REFERENCE")] = None,
    token_b: Annotated[str | None, typer.Option(help="--token for the second broker.", metavar="REFERENCE")] = None,
    client_conf_a: Annotated[str | None, typer.Option(help="--client-conf for the first.", metavar="FILE")] = None,
    client_conf_b: Annotated[str | None, typer.Option(help="--client-conf for the second.", metavar="FILE")] = None,
    patience: Patience = 30.0,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Compare two topics or clusters by digests; exit 1 if a message is not the same on both sides."""
    from magnetar.jobs.reader.unit_reader import check_directory, units
    from magnetar.jobs.verification.comparison import Difference, Side, matching_for
    from magnetar.jobs.verification.comparison import compare as differences

    with errors_reported():
        check_file(out)
        sides = []
        for topic, url, data, token, conf in (
            (topic_a, url_a, data_a, token_a, client_conf_a),
            (topic_b, url_b, data_b, token_b, client_conf_b),
        ):
            way = access(None if url == "-" else url, login(token, conf), data, patience)
            sides.append(Side(topic, way, units(way, topic, least=cores)))
            check_directory(way, sides[-1].units)
        a, b = sides
        matching_for(a, b, by)
        with session("compare", cores, memory) as spark:
            result = differences(spark, a, b, way=by)
        if out is not None:
            summary = {"a": topic_a, "b": topic_b, "messages_a": result.messages_a, "messages_b": result.messages_b}
            summary |= {"counts": result.counts, "not_readable": result.missing}
            write_rows(out, Difference, result.differences, {"job": "compare", **summary})
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(result.counts.items())) or "the same messages"
    title = f"A {topic_a}: {result.messages_a} messages, B {topic_b}: {result.messages_b}: {counts}"
    names = ("kind", "partition and producer", "id", "in A", "in B", "at A", "at B")
    show(title, names, result.differences)
    if result.missing:
        show("not readable", ("what",), [(one,) for one in result.missing])
    raise typer.Exit(FOUND if result.counts or result.missing else CLEAN)


@app.command(epilog="Example: magnetar jobs replay orders orders-again --id fix-42 --url pulsar://localhost:6650")
def replay(
    source: Annotated[str, typer.Argument(help="A topic: a dead-letter topic, or one with a subscription's backlog.")],
    target: Annotated[str, typer.Argument(help="Where the messages are published once more.")],
    id: Annotated[str, typer.Option("--id", help="Names this replay: two runs of one name publish once.")],
    url: ServiceUrl = None,
    subscription: Annotated[str | None, typer.Option(help="Only what it has not acknowledged.")] = None,
    admin_url: JobWebUrl = None,
    where: Annotated[str | None, typer.Option(help="SQL: which messages, e.g. \"__key = 'a'\".")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(parser=file_name, help="Where the plan is kept; replay-ID.json if not given.", metavar="FILE"),
    ] = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    patience: Patience = 30.0,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Publish a backlog or a dead-letter topic once more, each message once however often this runs."""
    from magnetar.jobs.replay import ReplayRequest, load_or_make, make_plan
    from magnetar.jobs.replay import replay as publish

    with errors_reported("the same command publishes what is not there yet"):
        wanted = ReplayRequest(id, source, subscription, target, where).checked()
        found = broker(url, admin_url, token, client_conf, context, both=subscription is not None)
        way, rest = access(found.service_url, found.login, None, patience), found.login.rest(found.web_url)
        path = plan or Path(f"replay-{id}.json")
        ranges, again = load_or_make(path, wanted, lambda: make_plan(way, rest, wanted))
        if not ranges:
            count = 0
        else:
            with session("replay", cores, memory) as spark:
                count = publish(spark, way, wanted, ranges)
    what = "again: what was published before was skipped" if again else "done"
    show(f"replay {id} {what}", ("messages", "to", "plan"), [(count, wanted.target, path)])


@app.command(epilog="Example: magnetar jobs report public/default --admin-url http://localhost:8080")
def report(
    namespace: Annotated[str, typer.Argument(help="tenant/namespace; all its topics.")] = "public/default",
    url: ServiceUrl = None,
    admin_url: JobWebUrl = None,
    price: Annotated[float, typer.Option(help="Of a GB for a month.", min=0)] = 0.0,
    retention: Annotated[int | None, typer.Option(help="What would go with so many minutes of retention?")] = None,
    ttl: Annotated[int | None, typer.Option(help="What would go with a TTL of so many seconds?", min=1)] = None,
    out: Out = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    patience: Patience = 30.0,
) -> None:
    """What topics hold and why, what other policies would free, how well it compresses, what it costs."""
    from magnetar.jobs.report import TopicReport, WhatIf, facts_of, report_rows, topic_report, topics_of
    from magnetar.runtime.clock import SystemClock

    with errors_reported():
        check_file(out)
        found = broker(url, admin_url, token, client_conf, context, both=True)
        way, rest = access(found.service_url, found.login, None, patience), found.login.rest(found.web_url)
        what_if = WhatIf(retention, ttl)
        aged = what_if != WhatIf()
        now = SystemClock().now_ms()
        rows = [
            topic_report(facts_of(way, rest, one, aged=aged), what_if, now, price) for one in topics_of(rest, namespace)
        ]
        if out is not None:
            write_rows(out, TopicReport, rows, {"job": "report", "namespace": namespace, "topics": len(rows)})
    names = ("topic", "size", "entries", "subs", "backlog", "slowest", "kept", "until", "oldest", "freed", "zstd",
             "lz4", "cost")  # fmt: skip
    show(f"{namespace}: {len(rows)} topics", names, report_rows(namespace, rows))


def main() -> None:
    """Run as spark-submit's program."""
    app(prog_name="magnetar jobs")


if __name__ == "__main__":
    main()
