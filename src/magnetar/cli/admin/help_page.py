"""Help pages of ``magnetar admin``: plain text, made from the tables, each with an example."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from magnetar.cli.admin.table import GROUPS, HIDDEN_GROUPS, Argument, Command, CommandFlag, commands_of
from magnetar.cli.admin.values import METAVARS

_WIDTH = 100
_SAMPLES = {
    "topic": "acme/orders/payments",
    "namespace": "acme/orders",
    "tenant": "acme",
    "cluster": "standalone",
    "policy": "isolated",
    "group": "gold",
    "subscription": "billing",
    "sub": "billing",
    "sub-name": "billing",
    "subscription-name": "billing",
    "role": "clerk",
    "roles": "clerk,auditor",
    "actions": "produce,consume",
    "bundle": "0x00000000_0x40000000",
    "config": "dispatchThrottlingRatePerTopicInMsg",
    "filename": "schema.json",
    "messageId": "12:3",
    "position": "12:3",
    "policy-flag": "producer_request_hold",
    "types": "Exclusive,Shared",
    "driver": "aws-s3",
    "url": "localhost:8080",
    "clusters": "standalone",
    "datetime": "2026-06-28T16:53:08Z",
    "delete-mode": "delete_when_no_subscriptions",
    "topic-flag": "acme/orders/payments",
    "key": "owner",
    "value": "billing",
    "properties": "owner=billing",
    "compatibility": "FULL",
    "subscription-auth-mode": "Prefix",
    "auto-failover-policy-type": "min_available",
    "auto-failover-policy-params": "min_limit=1,usage_threshold=80",
    "namespaces": "acme/.*",
    "primary": "broker-1.*",
    "allocator": "default",
    "source": "acme/orders/payments-source",
    "tenant/cluster": "acme/standalone",
}
_KINDS = {"int": "8", "long": "8", "double": "1.5", "seconds": "3h", "millis": "10s", "size": "10G", "int-size": "32M"}


def meant(word: str, names: Iterable[str]) -> str:
    """Return a question for a name that is nearly right, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(names), 1, 0.6)
    return f"; do you mean {close[0]}?" if close else ""


def root_page(flags: Sequence[CommandFlag]) -> str:
    """Return the page of all groups."""
    groups = [(name, said) for name, said in GROUPS.items() if name not in HIDDEN_GROUPS]
    return "\n".join(
        [
            "Usage: magnetar admin [FLAGS] GROUP COMMAND [ARGUMENTS]",
            "",
            "Operate a broker, with the commands of Apache Pulsar's pulsar-admin.",
            "",
            "Groups:",
            *_rows(groups),
            "",
            "Flags:",
            *_rows((_names(flag), flag.said) for flag in flags),
            "",
            "Example: magnetar admin topics list public/default",
        ]
    )


def group_page(group: str) -> str:
    """Return the page of a group's commands; those that are hidden are left out, as in pulsar-admin."""
    commands = commands_of(group)
    hide = not all(one.hidden for one in commands.values())
    shown = [one for name, one in commands.items() if name == one.name and not (hide and one.hidden)]
    return "\n".join(
        [
            f"Usage: magnetar admin {group} COMMAND [ARGUMENTS]",
            "",
            GROUPS[group],
            "",
            "Commands:",
            *_rows((one.name, one.said) for one in shown),
            "",
            f"Example: {example(shown[0])}",
        ]
    )


def command_page(command: Command) -> str:
    """Return the page of one command."""
    words = [name_of(argument) for argument in command.arguments]
    flags = [flag for flag in command.flags if not flag.hidden]
    lines = [f"Usage: magnetar admin {command.group} {command.name} {' '.join(['[FLAGS]', *words])}", "", command.said]
    if command.arguments:
        lines += ["", "Arguments:", *_rows((name_of(one), one.said) for one in command.arguments)]
    if flags:
        lines += ["", "Flags:", *_rows((_names(flag), _said(flag)) for flag in flags)]
    return "\n".join([*lines, "", f"Example: {example(command)}"])


def example(command: Command) -> str:
    """Return a command line with all that must be given."""
    words = ["magnetar admin", command.group, command.name]
    if command.refusal is not None:
        return " ".join([*words[:1], "topics list public/default"])
    for argument in command.arguments:
        words.append(_SAMPLES.get(argument.name, argument.name))
    chosen = [flag for flag in command.flags if flag.required]
    pairs = [mark.removeprefix("either:").partition("|")[0] for mark in command.marks if mark.startswith("either:")]
    chosen += [flag for flag in command.flags if flag.key in pairs]
    if command.name in _BESIDES:
        chosen += [flag for flag in command.flags if flag.key in _BESIDES[command.name] and flag not in chosen]
    for flag in chosen:
        words.append(max(flag.names, key=len))
        if flag.kind != "switch":
            words.append(_sample(flag))
    return " ".join(f"'{word}'" if "*" in word else word for word in words)


_BESIDES = {
    "set-backlog-quota": ["limit"],
    "expire-messages": ["expireTime"],
    "reset-cursor": ["time"],
    "split-bundle": ["bundle"],
    "get-topic-positions": ["bundle"],
    "set-offload-policies": ["region"],
    "set-schema-autoupdate-strategy": ["compatibility"],
    "update-subscription-properties": ["property"],
}
"""Flags without which a command has no meaning although none of them must be given."""


def _sample(flag: CommandFlag) -> str:
    if flag.kind.startswith("one of "):
        return flag.kind.removeprefix("one of ").split("|")[0]
    if flag.key in ("policy", "topic"):
        return _SAMPLES[f"{flag.key}-flag"]
    return _SAMPLES.get(flag.key) or _KINDS.get(flag.kind) or ("owner=billing" if "pair" in flag.kind else "us-east-1")


def name_of(argument: Argument) -> str:
    """Return how an argument is shown."""
    shown = argument.name.upper()
    return shown if argument.required else f"[{shown}]"


def _names(flag: CommandFlag) -> str:
    joined = ", ".join(sorted(flag.names, key=len))
    kind = flag.kind.removeprefix("one of ") if flag.kind.startswith("one of ") else METAVARS.get(flag.kind, "")
    return joined if flag.kind == "switch" else f"{joined} {kind}"


def _said(flag: CommandFlag) -> str:
    if flag.required:
        return f"{flag.said} [required]"
    return f"{flag.said} [default: {flag.default}]" if flag.default else flag.said


def _rows(rows: Iterable[tuple[str, str]]) -> list[str]:
    pairs = list(rows)
    left = min(max((len(name) for name, _ in pairs), default=0), 44)
    lines = []
    for name, said in pairs:
        wrapped = textwrap.wrap(said, _WIDTH - left - 4) or [""]
        if len(name) > left:
            lines.append(f"  {name}")
            name = ""
        lines += [f"  {name:<{left}}  {wrapped[0]}", *(f"  {'':<{left}}  {more}" for more in wrapped[1:])]
    return lines
