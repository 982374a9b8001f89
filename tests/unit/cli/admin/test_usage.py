"""Arguments that cannot be are refused with what is wrong with them, before anything is sent."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from magnetar.cli.admin import topic_commands
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
        (["topics", "list", "t1/a", "--bundle", ""], "--bundle is empty; is a variable not set?"),
        (["topics", "peek-messages", "t", "-s", "", "-n", "1"], "--subscription is empty; is a variable not set?"),
        (["topics", "unsubscribe", "t", "-s", ""], "--subscription is empty"),
        (["topics", "skip", "t", "-s", "", "-n", "1"], "--subscription is empty"),
        (["topics", "clear-backlog", "t", "-s", ""], "--subscription is empty"),
        (["namespaces", "clear-backlog", "t1/a", "-s", "", "--force"], "--sub is empty"),
        (["namespaces", "clear-backlog", "t1/a", "-b", "", "--force"], "--bundle is empty"),
        (["namespaces", "unsubscribe", "t1/a", "-s", ""], "--sub is empty"),
        (["namespaces", "unload", "t1/a", "-b", ""], "--bundle is empty"),
        (["namespaces", "grant-permission", "t1/a", "--role", "", "--actions", "produce"], "--role is empty"),
        (
            ["namespaces", "grant-subscription-permission", "t1/a", "-s", "", "-rs", "produce"],
            "--subscription is empty",
        ),
        (["topicPolicies", "remove-subscription-dispatch-rate", "t", "-s", ""], "--subscription is empty"),
    ],
)
def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert run(["--admin-url", "http://127.0.0.1:1", *words]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["clear-backlog", "acme/orders"], ["clear-backlog", "acme/orders", "--json"]])
def test_a_question_that_nobody_answers_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """A script without a terminal took the end of its input for done, and found the question in its output."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["--admin-url", "http://127.0.0.1:1", "namespaces", *words]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "(Y or N)" in err and "--force" in err


def test_a_list_of_topics_that_is_too_long_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Cut at its limit its last line is another name, perhaps that of another topic."""
    monkeypatch.setattr(topic_commands, "_LIST_BYTES_MAX", 10)
    listed = tmp_path / "topics"
    listed.write_text("t-1\nt-1234567\n")
    assert run(["--admin-url", "http://127.0.0.1:1", "topics", "delete", "--from-file", str(listed)]) == 1
    assert "more than 10 bytes" in capsys.readouterr().err


def test_nothing_is_asked_of_a_broker_where_a_name_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that was not set cleared all subscriptions of a namespace instead of one, or granted an action to a
    role whose name is the path's next word."""
    assert run(["--admin-url", "http://127.0.0.1:1", "namespaces", "clear-backlog", "t1/a", "-s", "", "--force"]) == 1
    assert "127.0.0.1" not in capsys.readouterr().err
