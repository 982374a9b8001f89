"""Every flag of `pulsar-perf` 4.0.8 is known by its name, with a value or without; so is every command."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from magnetar.cli.perf.command import REFUSED, app

FLAGS = {
    "consume": (
        "--acks-delay-millis= --auto-scaled-receiver-queue-size --auto_ack_chunk_q_full --batch-index-ack "
        "--encryption-key-value-file= --expire_time_incomplete_chunked_messages= --histogram-file= "
        "--max_chunked_msg= --num-consumers= --num-messages= --num-subscriptions= --num-topic= --num-topics= "
        "--numMessage-perTransaction= --pool-messages= --rate= --receiver-queue-size-across-partitions= "
        "--receiver-queue-size= --replicated --subscriber-name= --subscription-position= --subscription-type= "
        "--subscriptions= --txn-enable --txn-timeout= -abort -ac -aq -e= -m= -mc= -n= -nmt= -ns= -ntxn= -p= "
        "-pm= -q= -r= -rs -s= -sp= -ss= -st= -t= -tto= -txn -v= "
    ),
    "produce": (
        "--access-mode= --admin-url= --batch-max-bytes= --batch-max-messages= --batch-time-window= --chunking "
        "--compression= --delay-range= --delay= --disable-batching --encryption-key-name= "
        "--encryption-key-value-file= --exit-on-failure --format-class= --format-payload --histogram-file= "
        "--max-outstanding-across-partitions= --max-outstanding= --message-key-generation-mode= "
        "--num-messages= --num-producers= --num-test-threads= --num-topic= --num-topics= "
        "--numMessage-perTransaction= --partitions= --payload-delimiter= --payload-file= --producer-name= "
        "--rate= --send-timeout= --separator= --set-event-time --size= --txn-enable --txn-timeout= "
        "--warmup-time= -abort -am= -au= -b= -bb= -bm= -ch -d= -db -dr= -e= -ef -f= -fc= -fp -k= -m= -mk= -n= "
        "-nmt= -np= -o= -p= -pn= -r= -s= -set -t= -threads= -tto= -txn -v= -z= "
    ),
    "read": (
        "--num-messages= --num-topic= --num-topics= --rate= --receiver-queue-size= --start-message-id= "
        "--use-tls -m= -n= -q= -r= -t= "
    ),
    "transaction": (
        "--admin-url= --num-subscriptions= --num-test-threads= --numMessage-perTransaction-consume= "
        "--numMessage-perTransaction-produce= --number-txn= --partitions= --receiver-queue-size= --replicated "
        "--subscription-position= --subscription-type= --subscriptions= --topics-c= --topics-p= --txn-disable "
        "--txn-timeout= -abort -au= -nmc= -nmp= -np= -ns= -ntxn= -q= -rs -sp= -ss= -st= -threads= -tto= "
        "-txnRate= "
    ),
}
COMMON = (
    "--auth-params= --auth-plugin= --auth_plugin= --busy-wait --listener-name= --max-connections= "
    "--max-lookup-request= --memory-limit= --num-io-threads= --num-listener-threads= --proxy-protocol= "
    "--proxy-url= --service-url= --ssl-factory-plugin-params= --ssl-factory-plugin= "
    "--stats-interval-seconds= --test-duration= --tls-allow-insecure --tls-enable-hostname-verification "
    "--trust-cert-file= -bw -c= -i= -ioThreads= -lt= -ml= -mlr= -time= -u= "
)


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_is_known(command: str) -> None:
    made: Any = typer.main.get_command(app)
    known: dict[str, bool] = {}
    for parameter in made.commands[command].params:
        known |= {name: not getattr(parameter, "is_flag", False) for name in parameter.opts}
    wanted = {flag.removesuffix("="): flag.endswith("=") for flag in (FLAGS[command] + COMMON).split()}
    assert len(wanted) > 25
    assert {flag: known.get(flag) for flag in wanted} == wanted


@pytest.mark.parametrize("command", REFUSED)
def test_other_commands_are_refused_by_name(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--some", "flag"])
    assert (done.exit_code, done.stdout) == (1, "") and f"perf {command} is not here" in done.stderr


@pytest.mark.parametrize(("flags", "each", "all_of_them"), [("", 10_000, 50_000), ("-o 5 -p 12", 5, 12)])
def test_what_waits_for_receipts_is_bounded(
    monkeypatch: pytest.MonkeyPatch, flags: str, each: int, all_of_them: int
) -> None:
    """--max-outstanding and --max-outstanding-across-partitions reach the client, and nothing says they do not."""
    loads: list[Any] = []
    monkeypatch.setattr("magnetar.cli.perf.run.run_load", lambda connection, load, **more: loads.append(load))
    ran = CliRunner().invoke(app, ["produce", "t", "-u", "pulsar://127.0.0.1:1", *flags.split()])
    assert (ran.exit_code, ran.stderr) == (0, "")
    options = loads[0].plan.options
    assert (options["max_pending_messages"], options["max_pending_messages_across_partitions"]) == (each, all_of_them)
    refused = CliRunner().invoke(app, ["produce", "t", "-u", "pulsar://127.0.0.1:1", "-p", "-1"])
    assert refused.exit_code == 1 and "not below 0" in refused.stderr


@pytest.mark.parametrize("command", ["produce t", "transaction --topics-p t"])
def test_partitions_are_made_over_rest_and_a_flag_without_meaning_is_named_once(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    made: list[Any] = []
    monkeypatch.setattr("magnetar.cli.perf.run.run_load", lambda connection, load, **more: None)
    monkeypatch.setattr("magnetar.cli.perf.topics.make_partitions", lambda rest, *rest_of_it: made.append(rest_of_it))
    flags = "-np 3 -u pulsar://127.0.0.1:1 --web-url http://127.0.0.1:2 -ioThreads 4"
    ran = CliRunner().invoke(app, [*command.split(), *flags.split()])
    assert (ran.exit_code, made) == (0, [(["t"], 3)]), ran.stderr
    assert ran.stderr == "magnetar: --num-io-threads: of the Java client; no meaning here\n"


def test_acknowledgements_gather_as_long_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    monkeypatch.setattr("magnetar.cli.perf.run.run_load", lambda connection, load, **more: loads.append(load))
    for flags in ([], ["--acks-delay-millis", "250"]):
        ran = CliRunner().invoke(app, ["consume", "t", "-u", "pulsar://127.0.0.1:1", *flags])
        assert (ran.exit_code, ran.stderr) == (0, "")
    assert [load.plan.options.get("ack_group_time_ms") for load in loads] == [None, 250]


@pytest.mark.parametrize("flags", ["consume t -r inf", "read t -r nan", "produce t -time inf"])
def test_what_is_no_number_is_refused(flags: str) -> None:
    """It made a traceback once the load ran."""
    refused = CliRunner().invoke(app, [*flags.split(), "-u", "pulsar://127.0.0.1:1"])
    assert refused.exit_code == 1 and "is no number" in refused.stderr, refused.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("consume t -ns 0", "--num-subscriptions: 1 at least"),
        ("consume t -ns -1", "--num-subscriptions: 1 at least"),
        ("consume t -txn -ntxn -1", "-ntxn: 0 at least"),
        ("consume t -txn -nmt 0", "--numMessage-perTransaction: 1 at least"),
        ("produce t -txn -nmt -3", "--numMessage-perTransaction: 1 at least"),
        ("produce t -txn -tto 0", "--txn-timeout: 1 at least"),
        ("transaction -tto -5", "--txn-timeout: 1 at least"),
        ("transaction -nmp -1", "--numMessage-perTransaction-produce: 0 at least"),
        ("transaction -nmc -1", "--numMessage-perTransaction-consume: 0 at least"),
        ("transaction -threads 9223372036854775807", "clients, and 1000000 are the most"),
        ("produce t -t 9223372036854775807", "producers, and 1000000 are the most"),
        ("produce t -t 1000 -n 1000 -threads 2", "these would be 2000000 producers"),
        ("consume t -ns 9223372036854775807", "consumers, and 1000000 are the most"),
        ("read t -t 9223372036854775807", "readers, and 1000000 are the most"),
        (f"produce t -dr 5,{5000 * '9'}", "--delay-range"),
        ("produce t --histogram-file /", "--histogram-file / is a directory"),
        ("produce t --histogram-file /nowhere/h", "there is no directory /nowhere"),
    ],
)
def test_numbers_that_no_test_has_are_refused(flags: str, said: str) -> None:
    """They ended in a traceback, took all memory, or ran for ever without a message."""
    refused = CliRunner().invoke(app, [*flags.split(), "-u", "pulsar://127.0.0.1:1"])
    assert refused.exit_code == 1 and said in refused.stderr, refused.stderr
