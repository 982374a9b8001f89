"""Flags that commands about messages share, as in ``pulsar-client``; for connections :mod:`magnetar.contexts`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from magnetar.contexts.broker_connection import ConnectionFlags
from magnetar.model.errors import InvalidValueError

AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON for each message.")]
ProxyUrl = Annotated[str | None, typer.Option("--proxy-url", hidden=True)]
ProxyProtocol = Annotated[str | None, typer.Option("--proxy-protocol", hidden=True)]
MemoryLimit = Annotated[
    str, typer.Option("--memory-limit", "-ml", help="Bytes that may wait for receipts, 32M; 0: 64M.", metavar="SIZE")
]
NoMemoryLimit = Annotated[str, typer.Option("--memory-limit", "-ml", hidden=True, metavar="SIZE")]
SchemaType = Annotated[
    str, typer.Option("--schema-type", "-st", help="bytes, or auto_consume: values by schema.", metavar="TYPE")
]

PrivateKey = Annotated[
    str | None, typer.Option("--encryption-key-value", "-ekv", help="The private key: file:///k.pem or data:…")
]
CryptoFailure = Annotated[
    str, typer.Option("--crypto-failure-action", "-ca", help="No key opens it: FAIL, DISCARD or CONSUME.")
]


def connection_flags(
    url: str | None,
    auth_plugin: str | None,
    auth_params: str | None,
    trust: str | None,
    context: str | None,
    client_conf: str | None,
    token: str | None,
) -> ConnectionFlags:
    """Return what a command says about its connection."""
    return ConnectionFlags(
        context=context,
        client_conf=client_conf,
        service_url=None if url is None else url.rstrip("/"),
        token=token,
        auth_plugin=auth_plugin,
        auth_params=auth_params,
        trust=trust,
    )


def memory(text: str) -> int:
    """Return the bytes of --memory-limit; 0 names none. Raises InvalidValueError."""
    from magnetar.cli.admin.values import size

    found = size(text)
    if found < 0:
        raise InvalidValueError(f"--memory-limit {text[:80]!r} is below 0")
    return found


def check_memory(text: str) -> None:
    """Say that a consumer has no use for --memory-limit, if it was given. Raises InvalidValueError."""
    if memory(text):
        typer.echo("magnetar: --memory-limit: of producers; --queue-size says how much is fetched ahead", err=True)


def check_pool(given: str | None) -> None:
    """Say that ``--pool-messages`` has no meaning, if it was given. Raises InvalidValueError about another word."""
    if given is None:
        return
    if given.lower() not in ("true", "false"):
        raise InvalidValueError(f"--pool-messages: expected true or false, got {given[:100]!r}")
    typer.echo("magnetar: --pool-messages: of the Java client; no meaning here", err=True)


def require_output(*, hidden: bool, closed: bool) -> None:
    """Raise InvalidValueError if messages are to be shown and standard output is closed."""
    if closed and not hidden:
        raise InvalidValueError(
            "standard output is closed (>&-): messages would be acknowledged and never seen; > /dev/null or "
            "--hide-content takes them unseen"
        )


def refuse(**given: object) -> None:
    """Raise InvalidValueError about flags of Pulsar's tools that are known and not built; empty ones are not given."""
    for name, value in given.items():
        if value:
            raise InvalidValueError(
                f"--{name.replace('_', '-')} is not built: {_REASONS.get(name, 'see docs/client.md')}"
            )


def refuse_words(words: Sequence[str], topic: str) -> None:
    """Raise InvalidValueError if words follow a topic, where people expect a message to stand."""
    if words:
        typed = " ".join(words)
        line = shlex.join(["magnetar", "produce", topic, "-m", typed])
        raise InvalidValueError(f"{typed!r} is no option: messages follow -m, in quotes if there are spaces: {line}")


_REASONS = {
    "proxy_url": "name the proxy's address as the service URL; proxies by SNI are not supported",
    "proxy_protocol": "proxies by SNI are not supported",
    "encryption_key_name": "a load is not encrypted; magnetar produce and consume take keys",
    "encryption_key_value_file": "a load is not encrypted; magnetar produce and consume take keys",
    "ssl_factory_plugin": "TLS is configured by --trust-cert-file and client.conf",
}
