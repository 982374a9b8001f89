"""``magnetar explain``: asks a broker's REST interface why something is as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from magnetar.contexts.flags import ClientConfFile, Context, Token, WebUrl
from magnetar.model.errors import InvalidValueError, MagnetarError, NotAvailableError
from magnetar.model.names import TopicName
from magnetar.runtime.command_line import commands, complain

if TYPE_CHECKING:
    from magnetar.client.rest import Rest

app = commands(
    "Say why something is as it is, and what to do about it.",
    example="Example: magnetar explain subscription orders billing",
)
_PATIENCE_S = 30.0


@app.callback()
def explain() -> None:
    """Say why something is as it is, and what to do about it."""


@app.command()
def subscription(
    topic: Annotated[str, typer.Argument(help="The topic; of a partitioned one, a partition.")],
    name: Annotated[str, typer.Argument(metavar="SUB", help="The subscription.")],
    admin_url: WebUrl = None,
    key: Annotated[str | None, typer.Option(help="Key_Shared: where the messages of this key are.")] = None,
    hash_value: Annotated[int | None, typer.Option("--hash", help="Key_Shared: where those of this hash are.")] = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as it is.")] = False,
) -> None:
    """Say why nothing arrives on a subscription. Example: magnetar explain subscription orders billing"""
    from magnetar.admin_api.quoted_names import subscription_part
    from magnetar.contexts.broker_connection import ConnectionFlags, connection

    try:
        if not name:
            raise InvalidValueError("SUB is empty: name a subscription; is a variable not set?")
        if key is not None and hash_value is not None:
            raise InvalidValueError("give either --key or --hash: a key has a hash of its own")
        parsed = TopicName.parse(topic)
        base = f"/admin/v2/{parsed.domain}/{parsed.namespace}/{quote(parsed.local_name, safe='')}"
        base += f"/subscription/{subscription_part(name)}"
        flags = ConnectionFlags(web_url=admin_url, token=token, client_conf=client_conf, context=context)
        broker = connection(flags).rest(_PATIENCE_S)
        if key is None and hash_value is None:
            answer = _get(broker, base + "/explain", parsed)
            lines = _in_words(explained, answer, broker)
        else:
            query = f"key={quote(key, safe='')}" if key is not None else f"hash={hash_value}"
            answer = _get(broker, f"{base}/unacknowledged?{query}", parsed)
            lines = _in_words(located, answer, broker)
    except (MagnetarError, OSError, ValueError) as error:
        complain(error)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    from magnetar.runtime.harmless_text import one_line

    for line in lines:  # consumers have the names that they like
        typer.echo(one_line(line))


def explained(answer: dict[str, Any]) -> list[str]:
    """The findings, then the numbers."""
    lines = []
    for finding in answer["findings"]:
        lines += [f"* {finding['text']}", f"  -> {finding['do']}"]
    lines.append("")
    kind = answer["type"] or "no type yet, as no consumer has been there"
    lines.append(
        f"{kind}, backlog {answer['msgBacklog']} entries ({answer['msgDelayed']} delayed, "
        f"{answer['msgInReplay']} to be sent again), {answer['unackedMessages']} messages unacknowledged"
    )
    lines.append(
        f"acknowledged up to {answer['markDeletePosition']}, next new message {answer['nextNewMessage'] or '-'}"
    )
    for consumer in answer["consumers"]:
        state = [word for word, so in (
            ("active", consumer["active"]), ("blocked on unacknowledged", consumer["blockedConsumerOnUnackedMsgs"]),
            ("socket full", not consumer["takesBytes"]),
        ) if so]  # fmt: skip
        lines.append(
            f"consumer {consumer['consumerName']}: {consumer['availablePermits']} permits, "
            f"{consumer['unackedMessages']} unacknowledged, {', '.join(state) or 'stand-by'}"
        )
    return lines


def located(answer: dict[str, Any]) -> list[str]:
    """Return lines that say where the messages of a hash or key are."""
    held = f", held by {answer['heldBy']}" if answer["draining"] else ""
    owner, keys = answer["owner"] or "no consumer", ", ".join(answer["keys"]) or "-"
    lines = [f"hash {answer['hash']} belongs to {owner}{held}; keys {keys}"]
    lines.append("delivered and not acknowledged: " + (" ".join(answer["unacknowledged"]) or "none"))
    lines.append("waiting: " + (" ".join(answer["waiting"]) or "none"))
    return lines


def _in_words(words: Callable[[dict[str, Any]], list[str]], answer: dict[str, Any], broker: Rest) -> list[str]:
    """Return the lines of an answer. Raises InvalidValueError about what no broker answers."""
    try:
        return words(answer)
    except (KeyError, TypeError):
        raise InvalidValueError(
            f"{broker.url} answers something that is no explanation: is it the HTTP port of magnetar? See --admin-url"
        ) from None


def _get(broker: Rest, path: str, topic: TopicName) -> dict[str, Any]:
    # a broker imports this module too, and has no use for an HTTP client
    from magnetar.client.rest import RestRefusedError

    try:
        answer: dict[str, Any] = broker.ask("GET", path)
        return answer
    except RestRefusedError as refused:
        said = f"the broker refuses: {refused}"
        raise ValueError(said + _next_step(refused.http_status, str(refused), topic)) from None
    except NotAvailableError as error:
        raise ValueError(f"{error}; see --admin-url") from None


def _next_step(status: int | None, said: str, topic: TopicName) -> str:
    """Return which command shows the names that there are, after a 404; else nothing."""
    if status != 404:
        return ""
    if said.lower().startswith("tenant does"):
        return "; which there are: magnetar admin tenants list"
    if said.lower().startswith(("namespace", "tenant")):
        return f"; which there are: magnetar admin namespaces list {topic.namespace.tenant}"
    if "ubscription" in said:
        return f"; which there are: magnetar admin topics subscriptions {topic.fqn}"
    return f"; which there are: magnetar admin topics list {topic.namespace}"
