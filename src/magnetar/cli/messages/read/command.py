"""``magnetar read``: messages of a topic from a place on, without a subscription, as ``pulsar-client read``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
from magnetar.runtime.command_line import commands

if TYPE_CHECKING:
    from magnetar.aio import Client

app = commands("Read messages of a topic.")


@app.command()
def read(
    topic: Annotated[str, typer.Argument(help="The topic.", metavar="TOPIC")],
    start: Annotated[
        str, typer.Option("--start-message-id", "-m", help="latest, earliest or LEDGER:ENTRY, after which it begins.")
    ] = "latest",
    inclusive: Annotated[
        bool, typer.Option("--start-message-id-inclusive", "-i", help="Begin with that message.")
    ] = False,
    count: Annotated[int, typer.Option("--num-messages", "-n", help="Messages to read; 0: for ever.")] = 1,
    rate: Annotated[float, typer.Option("--rate", "-r", help="Messages a second; 0: as fast as possible.")] = 0.0,
    queue_size: Annotated[int, typer.Option("--queue-size", "-q", help="Messages fetched ahead; 0: 1000.")] = 0,
    as_hex: Annotated[bool, typer.Option("--hex", help="Print payloads in hexadecimal.")] = False,
    hide_content: Annotated[bool, typer.Option("--hide-content", help="Print a line each 1000 messages only.")] = False,
    metadata: Annotated[bool, typer.Option("--print-metadata", "-mp", help="Print ids, producer and more.")] = False,
    chunked_max: Annotated[int, typer.Option("--max_chunked_msg", "-mc", hidden=True)] = 0,
    ack_oldest: Annotated[bool, typer.Option("--auto_ack_chunk_q_full", "-ac", hidden=True)] = False,
    schema_type: flags.SchemaType = "bytes",
    pool: Annotated[str | None, typer.Option("--pool-messages", "-pm", hidden=True)] = None,
    key_value: flags.PrivateKey = None,
    crypto_failure: flags.CryptoFailure = "FAIL",
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
    memory_limit: flags.NoMemoryLimit = "0",
    as_json: flags.AsJson = False,
) -> None:
    """Read messages and print them; nothing is acknowledged. Example: magnetar read orders -m earliest -n 10"""
    from magnetar.cli.messages.encryption_flags import decryption
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.messages.read.start_id import start_id
    from magnetar.cli.messages.receiver import Receiver, schema_options
    from magnetar.cli.messages.session import run

    with usage():
        flags.refuse(
            proxy_url=proxy_url, proxy_protocol=proxy_protocol, max_chunked_msg=chunked_max,
            auto_ack_chunk_q_full=ack_oldest,
        )  # fmt: skip
        flags.check_memory(memory_limit)
        flags.check_pool(pool)
        receiver = Receiver(
            count=count, verb="read", rate=rate, as_hex=as_hex, hide_content=hide_content, metadata=metadata,
            as_json=as_json,
        )  # fmt: skip
        begin, options = start_id(start), decryption(key_value, crypto_failure) | schema_options(schema_type)

    async def work(client: Client) -> None:
        async with await client.create_reader(
            topic, begin, receiver_queue_size=queue_size or 1_000, start_message_id_inclusive=inclusive, **options
        ) as reader:
            await receiver.take(reader.read_next)

    connection = flags.connection_flags(url, auth_plugin, auth_params, trust, context, client_conf, token)
    run(connection, work, receiver.say_count, listener_name=listener_name)
