"""Every flag of `pulsar-client` 4.0.8 is known by its name, with a value or without."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from magnetar.app.typed_words import helped, in_order

CONNECTION = (
    "--auth-params= --auth-plugin= --listener-name= --memory-limit= -ml= --proxy-protocol= --proxy-url= --url= "
    "--tlsTrustCertsFilePath="
)
SHARED = (
    "--auto_ack_chunk_q_full -ac --crypto-failure-action= -ca= --encryption-key-value= -ekv= --hex --hide-content "
    "--max_chunked_msg= -mc= --num-messages= -n= --pool-messages= -pm= --print-metadata -mp --queue-size= -q= "
    "--rate= -r= --schema-type= -st="
)
FLAGS = {
    "produce": "--chunking -c --disable-batching -db --disable-replication -dr --encryption-key-name= -ekn= "
    "--encryption-key-value= -ekv= --files= -f= --key= -k= --key-schema= -ks= --key-value-encoding-type= -kvet= "
    "--key-value-key= -kvk= --key-value-key-file= -kvkf= --messages= -m= --num-produce= -n= --properties= -p= "
    "--rate= -r= --separator= -s= --value-schema= -vs=",
    "consume": f"{SHARED} --end-timestamp= -etp= --regex --replicated -rs --start-timestamp= -stp= "
    "--subscription-mode= -m= --subscription-name= -s= --subscription-position= -p= --subscription-type= -t=",
    "read": f"{SHARED} --start-message-id= -m= --start-message-id-inclusive -i",
}  # fmt: skip


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_is_known(command: str) -> None:
    app = importlib.import_module(f"magnetar.cli.messages.{command}.command").app
    known: dict[str, bool] = {}
    made: Any = typer.main.get_command(app)
    for parameter in made.params:
        known |= {name: not getattr(parameter, "is_flag", False) for name in parameter.opts}
    wanted = {flag.removesuffix("="): flag.endswith("=") for flag in f"{FLAGS[command]} {CONNECTION}".split()}
    assert {flag: known.get(flag) for flag in wanted} == wanted


def test_a_connection_before_the_command() -> None:
    """Flags are taken as in scripts for pulsar-client."""
    line = "--url u --auth-plugin=p produce t -m a"
    assert in_order(line.split()) == ["produce", "--url", "u", "--auth-plugin=p", "t", "-m", "a"]
    for line in ("produce t -m a", "--version", "--help", "standalone --data d", "--url u"):
        assert in_order(line.split()) == line.split()


def test_help_is_also_a_word() -> None:
    """``magnetar help produce`` is what many type first."""
    assert helped(["help"]) == ["--help"]
    assert helped(["help", "admin", "topics", "list"]) == ["admin", "topics", "list", "--help"]
    assert helped(["produce", "help"]) == ["produce", "help"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("produce t -m x -r nan", "--rate"),
        ("produce t -m x -r inf", "--rate"),
        ("consume t -s s -r nan", "--rate"),
        ("read t -r -1", "--rate"),
        ("produce t -f /dev/zero", "which is no message"),
        ("produce t hello", "magnetar produce t -m hello"),
        ("produce t -m hello big world", "magnetar produce t -m 'big world'"),
    ],
)
def test_absurd_values_are_refused_before_anything_is_connected(
    monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    """A file that never ends, too: it was read until there was no memory left."""
    monkeypatch.setattr("magnetar.cli.messages.produce.sender.FILE_BYTES_MAX", 1 << 20)
    command, *words = line.split()
    app = importlib.import_module(f"magnetar.cli.messages.{command}.command").app
    done = CliRunner().invoke(app, [*words, "--url", "pulsar://127.0.0.1:1"])
    assert done.exit_code == 2 and said in done.stderr, done.stderr
