"""``magnetar consume``: messages of a subscription, printed and acknowledged, as ``pulsar-client consume``."""

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
from magnetar.runtime.command_line import commands, output_was_closed

if TYPE_CHECKING:
    from magnetar.aio import Client

app = commands("Receive messages of a subscription.")


@app.command()
def consume(
    topic: Annotated[str, typer.Argument(help="The topic, or with --regex a pattern.", metavar="TOPIC")],
    subscription: Annotated[str, typer.Option("--subscription-name", "-s", help="The subscription.")],
    count: Annotated[int, typer.Option("--num-messages", "-n", help="Messages to take; 0: for ever.")] = 1,
    kind: Annotated[str, typer.Option("--subscription-type", "-t", help="Shared, Failover, Key_Shared.")] = "Exclusive",
    position: Annotated[str, typer.Option("--subscription-position", "-p", help="Latest or Earliest.")] = "Latest",
    mode: Annotated[str, typer.Option("--subscription-mode", "-m", help="Durable or NonDurable.")] = "Durable",
    rate: Annotated[float, typer.Option("--rate", "-r", help="Messages a second; 0: as fast as possible.")] = 0.0,
    regex: Annotated[bool, typer.Option("--regex", help="TOPIC is a regular expression.")] = False,
    queue_size: Annotated[int, typer.Option("--queue-size", "-q", help="Messages fetched ahead; 0: 1000.")] = 0,
    as_hex: Annotated[bool, typer.Option("--hex", help="Print payloads in hexadecimal.")] = False,
    hide_content: Annotated[bool, typer.Option("--hide-content", help="Print a line each 1000 messages only.")] = False,
    metadata: Annotated[bool, typer.Option("--print-metadata", "-mp", help="Print ids, producer and more.")] = False,
    start: Annotated[int, typer.Option("--start-timestamp", "-stp", help="Seek to this time first (ms).")] = 0,
    end: Annotated[int | None, typer.Option("--end-timestamp", "-etp", help="Stop after this time (ms).")] = None,
    replicated: Annotated[bool, typer.Option("--replicated", "-rs", help="Replicate the subscription.")] = False,
    chunked_max: Annotated[int, typer.Option("--max_chunked_msg", "-mc", help="Incomplete messages; 0: 10.")] = 0,
    ack_oldest: Annotated[
        bool, typer.Option("--auto_ack_chunk_q_full", "-ac", help="Acknowledge the oldest beyond that.")
    ] = False,
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
    """Receive messages, print and acknowledge them. Example: magnetar consume orders -s billing -p Earliest -n 0"""
    from magnetar.cli.messages.consume.subscription_options import subscription_options, wanted_topic
    from magnetar.cli.messages.encryption_flags import decryption
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.messages.receiver import Receiver, schema_options, silence
    from magnetar.cli.messages.session import run

    with usage():
        flags.refuse(proxy_url=proxy_url, proxy_protocol=proxy_protocol)
        flags.check_memory(memory_limit)
        flags.check_pool(pool)
        receiver = Receiver(
            count=count, verb="consumed", rate=rate, as_hex=as_hex, hide_content=hide_content, metadata=metadata,
            as_json=as_json, end_timestamp=end, waits_for=silence(topic, subscription, position),
        )  # fmt: skip
        options = subscription_options(kind, position, mode, queue_size, chunked_max, ack_oldest, replicated)
        options |= decryption(key_value, crypto_failure) | schema_options(schema_type)
        wanted = wanted_topic(topic, regex)
        flags.require_output(hidden=hide_content, closed=output_was_closed())

    async def work(client: Client) -> None:
        async with await client.subscribe(wanted, subscription, **options) as consumer:
            if start > 0:
                await consumer.seek(start)
            await receiver.take(consumer.receive, consumer.acknowledge)

    connection = flags.connection_flags(url, auth_plugin, auth_params, trust, context, client_conf, token)
    run(connection, work, receiver.say_count, listener_name=listener_name)
