"""Arguments that cannot be are refused with what is wrong with them, before anything is sent."""

from __future__ import annotations

import pytest

from magnetar.cli.admin.command import run

EXPIRE = ["topics", "expire-messages", "t", "-s", "s"]
RESET = ["topics", "reset-cursor", "t", "-s", "s"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*EXPIRE, "-t", "-5"], "--expireTime is an age of 0 or more, not -5"),
        (EXPIRE, "give either --expireTime or --position"),
        ([*RESET, "-t", "-5"], "--time is how far to go back: 0 or more"),
        (RESET, "give either --messageId or --time"),
        (["namespaces", "create", "t1/a/b"], "namespace 't1/a/b': a namespace is TENANT/NAMESPACE"),
        (["namespaces", "policies", "t1/a/b"], "namespace 't1/a/b': a namespace is TENANT/NAMESPACE"),
        (["namespaces", "set-retention", "t1/a/b", "-s", "1", "-t", "1"], "a namespace is TENANT/NAMESPACE"),
        (["topics", "list", "t1/a/b"], "a namespace is TENANT/NAMESPACE"),
    ],
)
def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert run(["--admin-url", "http://127.0.0.1:1", *words]) == 1
    assert said in capsys.readouterr().err
