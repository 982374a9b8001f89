"""``python -m tools.coverage commands``: which commands of ``pulsar-admin`` work, are refused, or are wrong.

A command *works* if it sends what the official tool sent for every one of its vectors; it is *refused* if its row says
why, and *wrong* otherwise, also if it is missing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from magnetar.cli.admin.table import GROUPS, commands_of

COMMANDS: Final = Path(__file__).parent / "pulsar_commands.tsv"
NOT_APPLICABLE: Final = {"bookies", "proxy-stats"}
"""Groups about other programs than a broker: the commands are sent, and what is asked has no such program."""


def differences() -> dict[str, str]:
    """Every command that is wrong, with the reason."""
    from tests.support.admin_vectors import VECTORS, differs

    wrong: dict[str, str] = {}
    judged = set()
    for vector in VECTORS:
        commands = commands_of(vector.words[0])
        found = commands.get(vector.words[1])
        name = f"{vector.words[0]} {found.name if found else vector.words[1]}"
        judged.add(name)
        said = differs(vector)
        if said is not None:
            wrong[name] = said
    for line in COMMANDS.read_text("utf-8").splitlines():
        group, name = line.split("\t")
        command = commands_of(group).get(name) if group in GROUPS else None
        if command is None:
            wrong[f"{group} {name}"] = "missing"
        elif command.refusal is None and f"{group} {command.name}" not in judged:
            wrong[f"{group} {name}"] = "no vector judges it"
    return wrong


def counts() -> Counter[str]:
    """How many commands there are of each kind."""
    wrong = differences()
    found: Counter[str] = Counter()
    for line in COMMANDS.read_text("utf-8").splitlines():
        group, name = line.split("\t")
        command = commands_of(group).get(name) if group in GROUPS else None
        if f"{group} {name}" in wrong or command is None:
            found["wrong"] += 1
        elif command.refusal is not None:
            found["refused with a reason"] += 1
        else:
            found["not applicable, but sent" if group in NOT_APPLICABLE else "works"] += 1
    return found


def main() -> int:
    """Print the counts and what is wrong; return 1 if anything is."""
    wrong = differences()
    for kind, count in sorted(counts().items()):
        print(f"{count:4} {kind}")
    for name, said in wrong.items():
        print(f"wrong: {name}: {said}")
    print(f"{sum(counts().values())} commands, wrong: {len(wrong)}")
    return 1 if wrong else 0
