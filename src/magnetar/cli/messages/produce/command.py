"""``magnetar produce``: messages from the command line or files to a topic, as ``pulsar-client produce``."""

from __future__ import annotations

from typing import Annotated

import typer

from magnetar.cli.messages import flags
from magnetar.contexts.flags import (
    AuthParams,
    AuthPlugin,
    ClientConfFile,
    Context,
    ListenerName,
    ServiceUrl,
    Token,
    Trust,
)
from magnetar.runtime.command_line import HELPED, commands

app = commands("Send messages to a topic.")


@app.command(context_settings={"allow_extra_args": True, **HELPED})
def produce(
    words: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic, with or without a partition.", metavar="TOPIC")],
    messages: Annotated[list[str] | None, typer.Option("--messages", "-m", help="Messages, with separators.")] = None,
    files: Annotated[list[str] | None, typer.Option("--files", "-f", help="Files, a message each; commas.")] = None,
    times: Annotated[int, typer.Option("--num-produce", "-n", help="How often to send all of them.")] = 1,
    rate: Annotated[float, typer.Option("--rate", "-r", help="Messages a second; 0: as fast as possible.")] = 0.0,
    disable_batching: Annotated[
        bool, typer.Option("--disable-batching", "-db", help="An entry each, always so.")
    ] = False,
    chunking: Annotated[bool, typer.Option("--chunking", "-c", help="Cut messages that are too large.")] = False,
    separator: Annotated[str, typer.Option("--separator", "-s", help="What stands between messages.")] = ",",
    properties: Annotated[list[str] | None, typer.Option("--properties", "-p", help="k1=v1,k2=v2.")] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of all messages.")] = None,
    key_value_key: Annotated[str | None, typer.Option("--key-value-key", "-kvk", help="Key of a key-value.")] = None,
    key_value_key_file: Annotated[str | None, typer.Option("--key-value-key-file", "-kvkf", help="Its file.")] = None,
    value_schema: Annotated[
        str, typer.Option("--value-schema", "-vs", help="bytes, string, json:DEFINITION or avro:DEFINITION.")
    ] = "bytes",
    key_schema: Annotated[str, typer.Option("--key-schema", "-ks", help="The same of the key.")] = "string",
    encoding: Annotated[
        str | None, typer.Option("--key-value-encoding-type", "-kvet", help="A key-value: separated or inline.")
    ] = None,
    disable_replication: Annotated[bool, typer.Option("--disable-replication", "-dr", help="Keep it here.")] = False,
    encryption_key_name: Annotated[
        str | None, typer.Option("--encryption-key-name", "-ekn", help="The name of the key to encrypt with.")
    ] = None,
    encryption_key_value: Annotated[
        str | None, typer.Option("--encryption-key-value", "-ekv", help="The public key: file:///k.pem or data:…")
    ] = None,
    url: ServiceUrl = None,
    auth_plugin: AuthPlugin = None,
    auth_params: AuthParams = None,
    trust: Trust = None,
    listener_name: ListenerName = None,
    context: Context = None,
    client_conf: ClientConfFile = None,
    token: Token = None,
    proxy_url: flags.ProxyUrl = None,
    proxy_protocol: flags.ProxyProtocol = None,
    memory_limit: flags.MemoryLimit = "0",
    as_json: Annotated[bool, typer.Option("--json", help="Print the id of each message as JSON.")] = False,
) -> None:
    """Send messages to a topic; each counts once it is stored. Example: magnetar produce orders -m "a,b" -k shop-7"""
    from magnetar.cli.messages.encryption_flags import encryption
    from magnetar.cli.messages.produce.sender import Sender, usage
    from magnetar.cli.messages.session import run

    with usage():
        flags.refuse_words(words.args, topic)
        flags.refuse(proxy_url=proxy_url, proxy_protocol=proxy_protocol)
        memory = flags.memory(memory_limit)
        sender = Sender(
            topic, messages or [], files or [], times, rate, chunking=chunking, separator=separator,
            properties=properties or [], disable_replication=disable_replication, as_json=as_json,
            keys=encryption(encryption_key_name, encryption_key_value),
        )  # fmt: skip
        sender.choose_schema(value_schema, key_schema, encoding, key, key_value_key, key_value_key_file)
    connection = flags.connection_flags(url, auth_plugin, auth_params, trust, context, client_conf, token)
    run(connection, sender.send, sender.say_count, listener_name=listener_name, memory_limit=memory)
