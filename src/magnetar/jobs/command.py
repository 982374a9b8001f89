"""``magnetar jobs``: maintenance of topics with Spark. Also the file to give to spark-submit (docs/jobs.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magnetar.jobs.findings import check_file, show, write_rows
from magnetar.jobs.running import CLEAN, FOUND, errors_told, session
from magnetar.jobs.units import Access

app = typer.Typer(help="Maintenance jobs on Spark: local, or through spark-submit.", no_args_is_help=True)

Url = Annotated[str | None, typer.Option(help="The broker, pulsar://host:port.", metavar="URL")]
Data = Annotated[
    Path | None,
    typer.Option(help="The broker's data directory: sealed ledgers are read from there, whether it runs or not."),
]
Token = Annotated[str | None, typer.Option(help="Authentication by this token.", envvar="PULSAR_TOKEN")]
Cores = Annotated[int, typer.Option(help="Of the local Spark session.", min=1)]
Memory = Annotated[str, typer.Option(help="Of the local Spark session's Java process.")]
Out = Annotated[Path | None, typer.Option(help="Write the result there too: FILE.json or FILE.parquet.")]


def access(url: str | None, data: Path | None, token: str | None = None) -> Access:
    """How the topics are reached."""
    return Access(url=url, directory=None if data is None else str(data), token=token)


@app.command()
def audit(
    topic: Annotated[str, typer.Argument(help="A topic; all its partitions are looked at.")],
    url: Url = None,
    data: Data = None,
    dense: Annotated[bool, typer.Option("--dense", help="Ids that a producer left out are findings as well.")] = False,
    out: Out = None,
    token: Token = None,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Look for gaps, repetitions, damage and messages out of order; exit 1 if there are any."""
    from magnetar.jobs.audit import audit as look
    from magnetar.jobs.reading import units

    with errors_told():
        check_file(out)
        way = access(url, data, token)
        found = units(way, topic, least=cores)
        with session("audit", cores, memory) as spark:
            result = look(spark, way, found, dense=dense)
        if out is not None:
            write_rows(out, result.findings)
    names = ("kind", "topic", "at", "until", "producer", "id", "messages", "what")
    counts = ", ".join(f"{count} x {kind}" for kind, count in sorted(result.counts.items())) or "nothing wrong"
    show(f"{topic}: {result.messages} messages of {result.producers} producers: {counts}", names, result.findings)
    raise typer.Exit(FOUND if result.counts else CLEAN)


@app.command()
def compare(
    topic_a: Annotated[str, typer.Argument(help="One topic, with all its partitions.")],
    url_a: Annotated[str, typer.Argument(help="Its broker, pulsar://host:port; - for only --data-a.")],
    topic_b: Annotated[str, typer.Argument(help="The other topic.")],
    url_b: Annotated[str, typer.Argument(help="Its broker; - for only --data-b.")],
    by: Annotated[str, typer.Option(help="Match messages by producer (and sequence id) or by content.")] = "producer",
    data_a: Data = None,
    data_b: Data = None,
    out: Out = None,
    token_a: Annotated[str | None, typer.Option(help="Authentication at the first broker.")] = None,
    token_b: Annotated[str | None, typer.Option(help="Authentication at the second broker.")] = None,
    cores: Cores = 2,
    memory: Memory = "1g",
) -> None:
    """Compare two topics or clusters by digests; exit 1 if a message is not the same on both sides."""
    from magnetar.jobs.compare import Side, matching_for
    from magnetar.jobs.compare import compare as differences
    from magnetar.jobs.reading import units

    with errors_told():
        check_file(out)
        sides = []
        for topic, url, data, token in ((topic_a, url_a, data_a, token_a), (topic_b, url_b, data_b, token_b)):
            way = access(None if url == "-" else url, data, token)
            sides.append(Side(topic, way, units(way, topic, least=cores)))
        a, b = sides
        matching_for(a, b, by)
        with session("compare", cores, memory) as spark:
            result = differences(spark, a, b, way=by)
        if out is not None:
            write_rows(out, result.differences)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(result.counts.items())) or "the same messages"
    title = f"A {topic_a}: {result.messages_a} messages, B {topic_b}: {result.messages_b}: {counts}"
    names = ("kind", "partition and producer", "id", "in A", "in B", "at A", "at B")
    show(title, names, result.differences)
    if result.missing:
        show("not readable", ("what",), [(one,) for one in result.missing])
    raise typer.Exit(FOUND if result.counts or result.missing else CLEAN)


def main() -> None:
    """For spark-submit."""
    app(prog_name="magnetar jobs")


if __name__ == "__main__":
    main()
