"""``magnetar contexts``: saved connections, as in ``magnetar --help`` (decision 039)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from magnetar.model.errors import ConflictError, InvalidValueError
from magnetar.runtime.command_line import commands, complain, file_name

if TYPE_CHECKING:
    from magnetar.contexts.context import Context
    from magnetar.contexts.context_file import Contexts

app = commands(
    "Saved connections: where brokers are and how to log in; secrets stand there by reference only.",
    example="Example: magnetar contexts add dev --web-url http://localhost:8080 --use",
)

T = TypeVar("T")
Name = Annotated[str, typer.Argument(help="The name of the context.", metavar="NAME")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def contexts() -> None:
    """Saved connections: where brokers are and how to log in; secrets stand there by reference only."""


@app.command("list")
def list_contexts(as_json: AsJson = False) -> None:
    """List all contexts; a star marks the one in use. Example: magnetar contexts list"""
    found = _read()
    if as_json:
        rows = {name: context.said() for name, context in sorted(found.by_name.items())}
        typer.echo(json.dumps({"current": found.current, "contexts": rows}, indent=2))
        return
    if not found.by_name:
        complain(f"none is saved in {found.path}; magnetar contexts add NAME --web-url URL", lead="")
    for name, context in sorted(found.by_name.items()):
        star = "*" if name == found.current else " "
        typer.echo(f"{star} {name}  {context.web_url or '-'}  {context.service_url or '-'}")


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="The name; the one in use.", metavar="[NAME]")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one context; secrets are references and are not read. Example: magnetar contexts show dev"""
    found = _read()
    name = name or found.current
    if name is None:
        raise _failed("no context is in use; name one, or: magnetar contexts use NAME")
    said = _checked(lambda: found.named(name)).said()
    typer.echo(json.dumps(said, indent=2) if as_json else "\n".join(f"{key} = {value}" for key, value in said.items()))


@app.command()
def use(name: Name) -> None:
    """Use a context wherever none is named. Example: magnetar contexts use dev"""
    _change(lambda found: found.using(name))


@app.command()
def remove(name: Name) -> None:
    """Remove a context. Example: magnetar contexts remove dev"""
    _change(lambda found: found.without(name))


@app.command()
def add(
    name: Name,
    service_url: Annotated[
        str,
        typer.Option("--service-url", "--url", "-u", help="pulsar://host:6650, with TLS pulsar+ssl://host:6651."),
    ] = "",
    web_url: Annotated[
        str, typer.Option("--web-url", "--admin-url", help="http://host:8080, with TLS https://host:8443.")
    ] = "",
    token: Annotated[str, typer.Option(help="A token: env:NAME, file:/path or command:PROGRAM.")] = "",
    auth_plugin: Annotated[str, typer.Option(help="The class of a login, as Pulsar names it.")] = "",
    auth_params: Annotated[str, typer.Option(help="Its parameters, with references for secrets.")] = "",
    client_conf: Annotated[str, typer.Option(help="A client.conf with the login and the files of TLS.")] = "",
    trust: Annotated[str, typer.Option(help="Certificates of the authorities that are trusted, PEM.")] = "",
    certificate: Annotated[str, typer.Option(help="The client's own certificate, PEM.")] = "",
    key: Annotated[str, typer.Option(help="The key of that certificate, PEM.")] = "",
    allow_insecure: Annotated[
        bool, typer.Option("--allow-insecure", help="Take any certificate: for experiments only.")
    ] = False,
    now: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a context of this name.")] = False,
) -> None:
    """Save a connection. Example: magnetar contexts add dev --web-url http://localhost:8080 --token env:PULSAR_TOKEN"""
    from magnetar.contexts.context import context_of, found_from_elsewhere

    given: dict[str, Any] = {
        "service_url": service_url,
        "web_url": web_url,
        "token": token,
        "auth_plugin": auth_plugin,
        "auth_params": auth_params,
        "client_conf": client_conf,
        "trust": trust,
        "certificate": certificate,
        "key": key,
        "allow_insecure": allow_insecure,
    }
    context = _checked(lambda: context_of(name, found_from_elsewhere(given), "the command line"))
    _save(name, context, now, force)


@app.command("import")
def import_conf(
    name: Name,
    file: Annotated[Path, typer.Argument(parser=file_name, help="Pulsar's client.conf.", metavar="FILE")],
    now: Annotated[bool, typer.Option("--use", help="Use it from now on.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a context of this name.")] = False,
) -> None:
    """Save the connection of a client.conf. Example: magnetar contexts import prod /etc/pulsar/client.conf"""
    from magnetar.contexts.conf_import import import_client_conf

    context, said = _checked(lambda: import_client_conf(file))
    _save(name, context, now, force)
    typer.echo(said)


def _save(name: str, context: Context, now: bool, force: bool) -> None:
    def saved(found: Contexts) -> Contexts:
        if name in found.by_name and not force:
            raise InvalidValueError(f"context {name} is there already; --force replaces it")
        changed = found.with_context(name, context)
        return changed.using(name) if now else changed

    _change(saved)


def _read() -> Contexts:
    from magnetar.contexts.context_file import read_contexts

    return _checked(read_contexts)


def _change(change: Callable[[Contexts], Contexts]) -> None:
    from magnetar.contexts.context_file import change_contexts

    _checked(lambda: change_contexts(change))


def _checked(act: Callable[[], T]) -> T:
    try:
        return act()
    except (ConflictError, InvalidValueError, OSError) as error:
        raise _failed(str(error)) from None


def _failed(said: str) -> typer.Exit:
    complain(said)
    return typer.Exit(1)
