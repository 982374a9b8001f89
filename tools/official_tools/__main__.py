"""The command line of `make judges`; ``--help`` explains it."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools.official_tools import command_list, exchange, verdict
from tools.official_tools.command_list import NOT_APPLICABLE, SHUTDOWN, Line
from tools.official_tools.exchange import RecordedLine
from tools.official_tools.our_tool import OurTool
from tools.official_tools.recording_proxy import RecordingProxy
from tools.official_tools.replay import Replay
from tools.official_tools.said import UNFINISHED, Said
from tools.servers import apache, magnetar
from tools.servers.process import HOST, Server

if TYPE_CHECKING:
    from tools.official_tools.java_tools import JavaTools

SETTINGS = {
    "transactionCoordinatorEnabled": "true",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "forceDeleteNamespaceAllowed": "true",
    "forceDeleteTenantAllowed": "true",
    "backlogQuotaDefaultLimitGB": "-1",
    "brokerDeleteInactiveTopicsEnabled": "false",
}
"""What both brokers are started with: no command is refused by a default, defaults that differ are the same, and no
topic goes while a busy machine takes more than a minute from one line about it to the next."""
SETTING = re.compile(r"(topics|topicPolicies) (set|remove|enable|disable|update|delete)-")
NOT_AWAITED = re.compile(r"brokers backlog-quota-check|\w+ get-dispatcher-pause-on-ack-state-persistent")
"""Commands of pulsar-admin that end before their answer has come."""
SETTLE_SECONDS = 0.1
"""How long a run waits after a policy of a topic was written: Apache Pulsar answers before it holds."""
RUNS = ("apache", "magnetar", "ours")
RECORD = '{"type":"record","name":"T","fields":[{"name":"a","type":"%s"}]}'


def client_conf(server: Server, directory: Path) -> Path:
    """A client.conf for a broker."""
    file = directory / "client.conf"
    file.write_text(f"webServiceUrl={server.http_url}\nbrokerServiceUrl={server.broker_url}\n")
    return file


def values(server: Server, directory: Path, home: Path) -> dict[str, str]:
    """What the braces of the list stand for; makes the files that commands read."""
    for name, kind in (("schema", "string"), ("incompatible", "int")):
        body = {"type": "AVRO", "schema": RECORD % kind, "properties": {}}
        (directory / f"{name}.json").write_text(json.dumps(body))
    return {
        "http": server.http_url,
        "broker": server.broker_url,
        "host": HOST,
        "http_port": str(server.http_port),
        "home": str(home),
        "dir": str(directory),
    }


def run_list(tools: JavaTools | OurTool, lines: list[Line], filled: dict[str, str], progress: str) -> dict[int, Said]:
    """Run every line in order."""
    said: dict[int, Said] = {}
    for line in lines:
        said[line.number] = answer = tools.run(line.tool, line.filled(filled))
        if SETTING.match(line.arguments):
            time.sleep(SETTLE_SECONDS)
        filled.update(line.captured(answer.out))
        if answer.code == UNFINISHED:
            print(f"{progress}: {line.arguments}: {answer.err}", flush=True)
    return said


def run_one(run: str, lines: list[Line], directory: Path) -> dict[int, Said]:
    """Start a broker, run the list against it, end it."""
    from tools.official_tools.java_tools import JavaTools  # a replay does without

    directory.mkdir(parents=True, exist_ok=True)
    home = apache.home()
    start = apache.start if run == "apache" else magnetar.start
    with start(directory / "broker", settings=SETTINGS) as server:
        conf, filled = client_conf(server, directory), values(server, directory, home)
        if run == "ours":
            return run_list(OurTool(conf), lines, filled, run)
        with JavaTools(home, conf) as tools:
            return run_list(tools, lines, filled, run)


def record(lines: list[Line], directory: Path) -> list[RecordedLine]:
    """Run the list with the official tools against Apache Pulsar, and note what they asked over REST."""
    from tools.official_tools.java_tools import JavaTools

    directory.mkdir(parents=True, exist_ok=True)
    home = apache.home()
    found: list[RecordedLine] = []
    with apache.start(directory / "broker", settings=SETTINGS) as server, RecordingProxy(server.http_port) as proxy:
        conf, filled = client_conf(server, directory), values(server, directory, home)
        conf.write_text(f"webServiceUrl={proxy.url}\nbrokerServiceUrl={server.broker_url}\n")
        with JavaTools(home, conf) as tools:
            for line in lines:
                said = tools.run(line.tool, line.filled(filled))
                if SETTING.match(line.arguments) or NOT_AWAITED.match(line.arguments):
                    time.sleep(SETTLE_SECONDS)
                filled.update(line.captured(said.out))
                names = {f"{HOST}:{server.http_port}": "{host}:{http_port}", server.broker_url: "{broker}"}
                names = {
                    f"{HOST}:{proxy.url.rpartition(':')[2]}": "{host}:{http_port}",
                    str(directory): "{dir}",
                    **names,
                }
                asked = [one.replaced(names) for one in proxy.taken()]
                found.append(RecordedLine(line.number, f"{line.tool} {line.arguments}", said, asked))
    return found


def replay(lines: list[Line], directory: Path) -> list[verdict.Difference]:
    """Send the recorded requests to magnetar."""
    directory.mkdir(parents=True, exist_ok=True)
    with magnetar.start(directory / "broker", settings=SETTINGS) as server:
        conf, filled = client_conf(server, directory), values(server, directory, Path("nowhere"))
        return Replay(server, filled, OurTool(conf), verdict.accepted()).run(lines, exchange.read())


def shut_down(directory: Path) -> Said:
    """What `pulsar-admin brokers shutdown` says to a magnetar of its own."""
    from tools.official_tools.java_tools import JavaTools

    directory.mkdir(parents=True, exist_ok=True)
    with magnetar.start(directory / "broker") as server, JavaTools(apache.home(), client_conf(server, directory)) as it:
        return it.run("admin", SHUTDOWN.split())


def kept(file: Path, run: str, lines: list[Line], directory: Path, *, again: bool) -> dict[int, Said]:
    """The answers of a run: those kept in ``file`` unless it must run again."""
    if file.exists() and not again:
        return {int(number): Said(*said) for number, said in json.loads(file.read_text()).items()}
    answers = run_one(run, lines, directory)
    file.write_text(json.dumps(answers, indent=1))
    return answers


def report(title: str, lines: list[Line], differences: list[verdict.Difference]) -> int:
    """Print counts and every difference that is not listed; return how many commands are left to mend."""
    tally = verdict.counts(lines, differences)
    left_out = sum(count for count, _ in NOT_APPLICABLE.values())
    for each in differences:
        if not each.reason:
            print(each)
    counted = ", ".join(f"{count} {name}" for name, count in tally.items())
    print(f"{title}: of {sum(tally.values())} commands in {len(lines)} lines {counted}; {left_out} not applicable")
    return tally["to mend"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make judges", description=__doc__)
    parser.add_argument("--runs", default="apache,magnetar", help=f"which runs, of {', '.join(RUNS)}")
    parser.add_argument("--keep", type=Path, help="directory for answers; a run kept there is not repeated")
    parser.add_argument("--again", default="", help="runs to repeat although they are kept")
    parser.add_argument("--only", default="", help="only lines that contain this text")
    parser.add_argument("--shutdown", action="store_true", help="also ask a broker of its own to shut down")
    parser.add_argument("--record", action="store_true", help="write recorded.jsonl.gz, which make test replays")
    parser.add_argument("--replay", action="store_true", help="send what was recorded to magnetar, without Java")
    asked = parser.parse_args()
    lines = [line for line in command_list.read() if asked.only in line.arguments]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="judges-") as scratch:
        if asked.record:
            exchange.write(record(lines, Path(scratch) / "apache"))
            return 0
        if asked.replay:
            found = replay(lines, Path(scratch) / "magnetar")
            return 1 if report("recorded requests of official tools on magnetar", lines, found) else 0
        keep = asked.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        answers = {
            run: kept(keep / f"{run}.json", run, lines, Path(scratch) / run, again=run in asked.again.split(","))
            for run in asked.runs.split(",")
        }
        known = verdict.accepted()
        for theirs, ours, title in (
            ("apache", "magnetar", "official tools on Apache Pulsar and on magnetar"),
            ("magnetar", "ours", "official tools and our command line on magnetar"),
        ):
            if theirs in answers and ours in answers:
                failed += report(title, lines, verdict.compare(ours, lines, answers[theirs], answers[ours], known))
        if asked.shutdown:
            print(f"brokers shutdown: {shut_down(Path(scratch) / 'shutdown')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
