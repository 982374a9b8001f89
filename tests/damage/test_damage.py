"""Damage to every kind of file, by seed: harmless, named or refused, and nothing that is kept changes.

``make damage`` runs 500 cases; this is the short form. ``MAGNETAR_SEED=<n>`` repeats one.
"""

from __future__ import annotations

import os
import sys
from collections import Counter

import pytest

from magnetar.storage.log import checkpoint_head, records
from magnetar.storage.metadata_log import metadata_scan
from tests.damage.cases import Directory, damaged, judged, made

CASES = int(os.environ.get("MAGNETAR_DAMAGE_CASES", "80"))


@pytest.fixture(scope="module")
def directories() -> list[Directory]:
    return [made(1, killed=False), made(2, killed=True), made(7, killed=True)]


def judge(directories: list[Directory], seed: int) -> tuple[str, str, str]:
    """Verdict, what was done, to what."""
    *own, foreign = directories
    directory = own[seed % len(own)]
    case = damaged(directory, foreign, seed)
    try:
        return judged(directory, case, seed), case.kind, case.name.partition("-")[0]
    except AssertionError as error:
        what = f"{case.kind} of {case.name} at {case.at} (killed: {directory.killed})"
        raise AssertionError(f"{what}: {error}\nreplay: MAGNETAR_SEED={seed} make damage") from error


def test_every_damage_is_harmless_named_or_refused(directories: list[Directory]) -> None:
    alone = os.environ.get("MAGNETAR_SEED")
    found = Counter(judge(directories, seed) for seed in ([int(alone)] if alone else range(CASES)))
    verdicts = Counter(verdict for verdict, _, _ in found.elements())
    sys.stdout.write(f"\n{', '.join(f'{count} {verdict}' for verdict, count in verdicts.most_common())}\n")
    if not alone:
        touched = {sort for _, _, sort in found}
        assert touched == {"LOCK", "checkpoint", "metadata", "newest", "reserve", "segment"}
        assert verdicts["tail"] <= CASES // 50


@pytest.mark.parametrize("checked", ["records", "checkpoints", "metadata", "copies"])
def test_a_build_without_its_checks_is_noticed(
    directories: list[Directory], checked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if checked == "records":
        monkeypatch.setattr(records, "crc32c", lambda data, crc=0: 0)
        directories = [made(1, killed=False), made(2, killed=True), made(7, killed=True)]
    elif checked == "checkpoints":
        monkeypatch.setattr(checkpoint_head, "require_owner", lambda head, owner: None)
    elif checked == "metadata":
        monkeypatch.setattr(metadata_scan, "_body", lambda line, instance: line[9:])
    else:
        monkeypatch.setattr(metadata_scan.ScannedCopy, "whole", True)
    for seed in range(400):
        try:
            judge(directories, seed)
        except Exception:
            return
    raise AssertionError("400 cases notice nothing")
