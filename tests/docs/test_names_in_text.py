"""Names of modules, classes and functions in docstrings and documents lead to something that is there."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
from collections.abc import Iterator
from functools import cache

from tests.support.code_names import ROOT, classes, names, trees

DOTTED = re.compile(r"(?<!`)``?[~!]?([A-Za-z_]\w*(?:\.\w+)+)(?:\(\))?``?(?!`)")
ROLE = re.compile(r":(?:mod|class|func|meth|attr|data|exc):`[~!]?(\w+)(?:\(\))?`")
FILE = re.compile(r"(?<!`)``?([\w./-]+\.(?:py|md))``?(?!`)")
NOT_OURS = frozenset(
    {
        "File.renameTo", "Trigger.AvailableNow", "Trigger.Once", "broker.conf", "standalone.conf", "clock.jump",
        "client.conf",
        "broker.aio_client", "broker.client", "broker.rest_url", "broker.restart", "broker.service_url",
        "broker.topics",
        "files.fail", "files.faults", "log.end", "log.first", "magnetar.broker.clients", "magnetar.ledger",
        "pyspark/daemon.py", "spark.read", "spark.readStream",
    }
)  # fmt: skip
"""Names of Java, of Spark, of variables, of a logger, of metadata in a file."""
OPTIONS = re.compile(
    r"spark\.(?:master|driver|pyspark|executorEnv|yarn|sql|streams)\b|storage\.aws_|(?:service|encryption)\.\w+"
)
"""Options of Spark and of the object store, and of the source and sink."""


@cache
def endings() -> frozenset[str]:
    """Every known name, and what is left of it without its first parts: `storage.log` is `magnetar.storage.log`."""
    parts = [name.split(".") for name in names()]
    return frozenset(".".join(name[first:]) for name in parts for first in range(len(name)))


@cache
def first_parts() -> frozenset[str]:
    parts = frozenset(part for module in trees() for part in module.split(".")) | frozenset(classes())
    return parts - {"asyncio"}  # the library's, and a name of `magnetar.aio`


@cache
def files() -> tuple[str, ...]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return tuple(listed.stdout.decode().split("\0"))


@cache
def path_endings() -> frozenset[str]:
    """Every file's path, and what is left of it without its first folders."""
    parts = [path.split("/") for path in files()]
    return frozenset("/".join(path[first:]) for path in parts for first in range(len(path)))


def wrong_names(text: str) -> list[str]:
    """Names of ours that lead nowhere: dotted ones, those in roles, and files."""
    found = []
    for name in DOTTED.findall(text):
        ours = name.partition(".")[0] in first_parts() and not name.endswith((".py", ".md"))
        if ours and name not in endings() and name not in NOT_OURS and not OPTIONS.match(name):
            found.append(name)
    found += [name for name in ROLE.findall(text) if name not in endings() and not hasattr(builtins, name)]
    for name in FILE.findall(text):
        if name not in NOT_OURS and name.lstrip("./") not in path_endings():
            found.append(name)
    return found


def _docstrings() -> Iterator[tuple[str, str]]:
    """Every docstring of the product, those below constants and fields too, with its module."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield module, node.value.value


def test_names_in_docstrings_lead_to_something() -> None:
    wrong = [f"{module}: {name}" for module, text in _docstrings() for name in wrong_names(text)]
    assert wrong == [], "\n" + "\n".join(wrong)


def test_names_in_documents_lead_to_something() -> None:
    documents = [name for name in files() if name.endswith(".md") and name != "CHANGELOG.md"]
    assert len(documents) > 40
    wrong = [f"{name}: {one}" for name in documents for one in wrong_names((ROOT / name).read_text())]
    assert wrong == [], "\n" + "\n".join(wrong)


def test_what_leads_nowhere_is_found() -> None:
    text = "`storage.journal.Journal` :class:`magnetar.spark.Haste` ``topic/haste.py`` `Journal.haste` :class:`Haste`"
    assert sorted(wrong_names(text)) == sorted(
        ["storage.journal.Journal", "magnetar.spark.Haste", "Journal.haste", "Haste", "topic/haste.py"]
    )
    assert wrong_names("`storage.log.journal.Journal`, `journal.Journal` :class:`Journal`, `log/journal.py`") == []
