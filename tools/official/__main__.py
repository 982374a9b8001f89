"""Run the official Python client's own suite against a broker and say what passes.

Starts the broker itself (`--broker`), unless `--address` and `--http` name one that is running. With `--own-conf`
magnetar runs as the suite's start script would have it: with the suite's configuration file, certificates, passwords
and tokens, in a network of its own where Linux allows that. The suite comes from `--suite`, a git directory of
apache/pulsar-client-python. With `--our-client` the tests of `cannot_pass.tsv` are listed with their reasons; with
`--own-conf` besides, the exit status is 1 if any other one fails, or one of these passes. Besides what the project
installs, some of its tests import `fastavro` and `requests`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.official import bootstrap, our_client, own_configuration, private_network, suite
from tools.official.expectations import cannot_pass, differences, shown
from tools.official.runner import Result, run
from tools.servers import apache, lite, magnetar
from tools.servers.process import Server, free_ports

SUITE_VARIABLE = "MAGNETAR_OFFICIAL_SUITE"
IMPORTS = ("pulsar", "fastavro", "requests", "google.protobuf")
# These change a policy of the whole namespace while they run.
NAMESPACE_WIDE = ("deduplication", "schema_evolve")


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.official", description=__doc__)
    add = parser.add_argument
    add("tests", nargs="*", help="run only tests whose name contains one of these")
    add("--suite", type=Path, default=os.environ.get(SUITE_VARIABLE), help=f"git directory (default ${SUITE_VARIABLE})")
    add("--broker", choices=("magnetar", "pulsar-lite", "apache"), default="magnetar", help="the broker to start")
    add("--command", default=magnetar.COMMAND, help="how to start magnetar")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a further setting of the broker")
    add("--address", help="host:port of a running broker; nothing is started then")
    add("--http", help="host:port of its HTTP")
    add("--tls-ports", default="0,0", help="ports of its TLS listeners, binary and HTTPS")
    add("--token-file", type=Path, help="a token that the tests of private/auth use")
    add("--admin-token", help="a superuser's token for the preparation")
    add("--python", default=sys.executable, help="interpreter that has the client installed")
    add("--timeout", type=float, default=90.0, help="seconds per test")
    add("--jobs", type=int, default=1, help="tests at once (they share namespaces: 1 is the honest figure)")
    add("--results", type=Path, help="write a TSV: test, outcome, seconds, error")
    add("--logs", type=Path, help="keep the output of failed tests in this folder")
    add("--own-conf", action="store_true", help="start magnetar with the suite's own configuration, TLS and logins")
    add("--our-client", action="store_true", help="run the suite on magnetar's client: its imports lead there")
    add("--list", action="store_true", help="only list the tests")
    add("--minimum", type=int, default=0, help="exit 1 if fewer pass")
    return parser.parse_args(given)


def start(options: argparse.Namespace, directory: Path) -> Server:
    """The broker that was asked for, with the suite's settings."""
    if options.address:
        ports = [int(str(address).rpartition(":")[2]) if address else 0 for address in (options.address, options.http)]
        return Server(options.address, ports[0], ports[1], directory / "none.log")
    settings = dict(bootstrap.SETTINGS)
    settings.update(dict(pair.split("=", 1) for pair in options.set))
    if options.broker == "pulsar-lite":
        return lite.start(directory)
    if options.broker == "apache":
        return apache.start(directory, settings=settings)
    broker, http = free_ports(2)
    return magnetar.start(directory, settings=settings, broker_port=broker, http_port=http, command=options.command)


def missing_imports(python: str) -> list[str]:
    return [
        name for name in IMPORTS if subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode
    ]


def report(results: Sequence[Result], options: argparse.Namespace) -> int:
    """Print the totals, write the files asked for, return the exit status."""
    if options.results:
        options.results.parent.mkdir(parents=True, exist_ok=True)
        header = "test\toutcome\tseconds\terror"
        options.results.write_text("\n".join([header, *(result.row() for result in results)]) + "\n")
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
        for result in results:
            if not result.good:
                (options.logs / f"{result.test}.log").write_text(result.output)
    wrong: list[str] = []
    if options.our_client:
        expected = cannot_pass()
        print("\n".join(["cannot pass, and why:", *shown(results, expected)]))
        # without its own configuration the tests with TLS and logins fail, whatever the client
        wrong = differences(results, expected) if options.own_conf else []
        print("\n".join(wrong), end="\n" if wrong else "")
    passed = sum(result.good for result in results)
    outcomes = Counter(result.outcome.value for result in results)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print(f"{passed} of {len(results)} pass, {sum(result.seconds for result in results):.0f} s of tests")
    return 1 if passed < options.minimum or wrong else 0


def execute(options: argparse.Namespace, tests: Path, chosen: Sequence[str], directory: Path) -> list[Result]:
    results = []
    token = options.admin_token
    if options.own_conf:
        started, token = own_configuration.start(tests, directory, options.command)
    else:
        started = start(options, directory)
    with started as server:
        print(f"{server.name}: {server.broker_url} {server.http_url if server.http_port else '(no HTTP)'}", flush=True)
        tls = [int(port) for port in options.tls_ports.split(",")]
        addresses = suite.Addresses(server.broker_port, server.http_port, tls[0], tls[1])
        suite.point_at(tests, own_configuration.PORTS if options.own_conf else addresses)
        if server.http_port:
            for path, answer in bootstrap.prepare(server.http_url, token).items():
                print(f"  {path}: {answer}")
        for result in run(
            chosen,
            tests,
            python=options.python,
            seconds_max=options.timeout,
            jobs=options.jobs,
            path=our_client.folder(directory, Path.cwd()) if options.our_client else None,
            alone=lambda test: any(word in test for word in NAMESPACE_WIDE),
        ):
            results.append(result)
            print(f"{result.outcome.value:9} {result.seconds:6.1f} s  {result.test}  {result.error[:120]}", flush=True)
    return results


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    if options.suite is None:
        print(f"name the suite: --suite or ${SUITE_VARIABLE}, a git directory of apache/pulsar-client-python")
        return 2
    if options.own_conf and not private_network.inside() and not options.list:
        if private_network.available():
            private_network.enter("tools.official", given)
        print("no network of its own here: the ports must be free, and test_connect_timeout may fail")
    with tempfile.TemporaryDirectory(prefix="magnetar-official-") as folder:
        try:
            tests = suite.extract(options.suite, Path(folder))
        except suite.SuiteError as error:
            print(error)
            return 2
        if options.token_file:
            (tests / suite.TOKEN_FILE).write_text(options.token_file.read_text())
        wanted = options.tests or [""]
        chosen = [name for name in suite.names(tests) if any(part in name for part in wanted)]
        if options.list:
            print("\n".join(chosen))
            return 0
        for name in missing_imports(options.python):
            print(f"warning: {options.python} has no {name}: the tests that import it will fail")
        print(f"{len(chosen)} tests of {options.suite} at {suite.revision(options.suite)}", flush=True)
        return report(execute(options, tests, chosen, Path(folder) / "broker"), options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
