"""Dockerfile, Compose file, unit, configuration of Prometheus and Grafana: what is seen without their programs.

The image is not built here. What its build runs is: the wheel is made of the files that it copies, and every command
in it exists.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from magnetar.app import main
from magnetar.config.configuration import load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def dockerfile() -> list[list[str]]:
    """The instructions, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def known(words: list[str]) -> None:
    """A command of ours exists and takes these words; settings among them are accepted."""
    command: Any = typer.main.get_command(main.app)
    if words[0] in main.PASSED_ON:
        module = __import__(f"magnetar.{main.PASSED_ON[words[0]]}.command", fromlist=["app"])
        command = typer.main.get_command(module.app)
        command.make_context(words[0], words[1:])
        return
    command.commands[words[0]].make_context(words[0], words[1:])
    load(flags=[after for word, after in pairwise(words) if word == "--set"])


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    """A file that .dockerignore keeps out would end the build."""
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for instruction, words in dockerfile():
        if instruction == "COPY" and not words.startswith("--from"):
            for source in words.split()[:-1]:
                assert (ROOT / source).exists() and source in kept, source


def test_the_container_has_no_rights_and_says_its_health() -> None:
    """No root, a volume, both ports, and commands that exist."""
    said = dict(dockerfile())
    assert said["USER"] == "10001:10001" and said["VOLUME"] == "/data" and said["EXPOSE"] == "6650 8080"
    health = json.loads(said["HEALTHCHECK"][said["HEALTHCHECK"].index("[") :])
    assert health[0] == "magnetar"
    known(health[1:])
    known(json.loads(said["CMD"]))
    assert json.loads(said["ENTRYPOINT"]) == ["magnetar"]


def test_the_ports_of_compose_are_this_machines_alone() -> None:
    """Nobody else reaches a broker without a login, nor Prometheus, nor Grafana."""
    services = compose()["services"]
    for name, service in services.items():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
    known(services["broker"]["command"])
    named = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    for place in named:
        assert place in compose()["volumes"] or (DEPLOY / place).exists(), place


def test_prometheus_and_grafana_find_what_they_are_given() -> None:
    """The rules, the target and the place of the dashboards are those of the Compose file."""
    prometheus = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    (job,) = prometheus["scrape_configs"]
    host, port = job["static_configs"][0]["targets"][0].split(":")
    assert host in compose()["services"] and port == "8080" and job["metrics_path"] == "/metrics"
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in compose()["services"]["prometheus"]["volumes"]}
    place = str(Path(prometheus["rule_files"][0]).parent)
    assert list((DEPLOY / mounted[place]).glob("*.yml"))
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/magnetar.yaml").read_text())["providers"][0]
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in compose()["services"]["grafana"]["volumes"]}
    assert list((DEPLOY / mounted[provider["options"]["path"]]).glob("*.json"))


def test_the_unit_starts_a_command_that_exists() -> None:
    """systemd's own check of it needs the installed program; every key has a value."""
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    unit.read(DEPLOY / "magnetar.service")
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program == "/opt/magnetar/bin/magnetar"
    words = [word for word in words if word not in ("--conf", "/etc/magnetar/broker.conf")]
    known(words)
    assert unit["Service"]["NoNewPrivileges"] == "yes" and unit["Service"]["User"] == "magnetar"


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.y*ml")), ids=lambda path: path.name)
def test_each_file_says_what_it_is(path: Path) -> None:
    """Whoever opens one reads first what it is for."""
    assert path.read_text().startswith("# ")
