"""``magnetar tokens``: keys and tokens as Apache Pulsar's command line makes and reads them."""

from __future__ import annotations

import base64
import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from magnetar.cli.tokens.command import app
from magnetar.security.authentication.revocation_list import RevocationList
from magnetar.security.identity import Identity
from tests.support.signed_tokens import SECRET, forged, inline, signed, signed_json

# made by bin/pulsar tokens of Apache Pulsar 4.0.8
PULSAR_SECRET = "yPr6tMsIKz0FEEWQIJjyyqH5kcSogvoBR5K9SXIkM9o="
PULSAR_SECRET_512 = "5mP5pcjmOHXcWMPnDKFTGaQ598Wf+MyPB9u3VZRfucjOJ31tzX6s0JOKQXCyg2tf1kJjDDQh87DooqWyca9UrA=="
PULSAR_PUBLIC_ES384 = (
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEe7E2NAn+TRrRZnzsMxSOQpxvV6oJb5YYb6Z8rGoDVvp42ocGLMDrvdhlMIP0G42Ba+VYeH61"
    "hOszPG2Ku4ESWCfnrsKIZcFWW+RJrcFZRCb99U2r4f5TAWi0Pe69bt0v"
)
PULSAR_PRIVATE_ES384 = (
    "ME4CAQAwEAYHKoZIzj0CAQYFK4EEACIENzA1AgEBBDCuTEkfLnEvaLz4XjcKf4LCibWFNT53idAU6+dmak9+vScn8jvvgK9jywAuXeeGA70="
)
PULSAR_PUBLIC_RS256 = (
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA8G87taNa4BHDyjSDplxjaTIfiMJPB85suF++Lx2PgsBAl5krX9Tqj8nFMFCP"
    "JbrvODw2KWfwCML/mSOYr5ur2ueDj2rKUuhW/AwW/OP+QH4E3aZBidpZceq9mHsi0JWJEyZXMNigSjtKzQ8PMeGN2ybTP6qOgw9nYiv0"
    "oA8hgg1/Y3I0V2zlwtp396us5czg58PmnYgVUBGZOl3PK23WMkkO1XixJyF3JPRhNATUFuXNzn7f6RmnivsQs5t1aClVyCgXlU386uIv"
    "4xTW21gnH6ME4h/wN0ajKQ4wRrM8C2F+Qvu3NG7fAUsjkntY1OXUeW1irrzZYSjnh9hZd0gdZwIDAQAB"
)
PULSAR_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.G1qANLBNXCxip-SGVAmWM1eS3itxs5ENo5E4zu6rxxI"
PULSAR_TOKEN_512 = (
    "eyJhbGciOiJIUzUxMiJ9.eyJzdWIiOiJhbGljZSIsImV4cCI6MjExMDczNjkwNn0.yeUwdNv4vCBQ6QGe1OGjvxK9ALyGI8H3_DoL08q"
    "qhXvzNgW7-G9aOM9PJveCArbegSv7X2StoFx0VhPfvmrmAA"
)
PULSAR_TOKEN_ES384 = (
    "eyJhbGciOiJFUzM4NCJ9.eyJzdWIiOiJhbGljZSJ9.-AdeqVTmquSKv8jR_VQYqW9QMEJEuKpv9G81A6d8e2xS2pk78JRqzslW_o_uyM"
    "zRG0PKzTdlaFC3FJy1CBeIulb6dbSaVLFCZBmNIAsPGUwmwnO17i99BarrACMiDlAQ"
)
PULSAR_TOKEN_RS256 = (
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.Qpjh5nbVDCp0n_pgZVy2IJZIxx2S6pj7c-EPPFVo7Ed1UKQWs8vOkFTSmt46w2"
    "fji6ZLWzw2zNvwbEVMS2PlNIZnq05JdB31pjBqOWgsr8zhZ0ItzZwwlboyHHAVd73GSff4dQIQQ0Jizv5EYNEbKeszO6SW_VAZ5tU2fG"
    "026Ze2O6TRaStZUufd09xLy-TlUXikz90LS9BitHqQeaYtMtFYeN2YtEAr6cC_09wOwujSlFk_L-6zxpJ95gEp5bFRx3JQ30C_8uS5a7"
    "lkuordpCkIlNGbP-tO_k8gebOJ1WLTuxhahsjrNnuVaT51CuBtEScAlKX9zTlh9zyBYhjB5w"
)


def called(*arguments: str, stdin: bytes = b"", **environment: str) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin, env=environment)


def done(*arguments: str, stdin: bytes = b"", **environment: str) -> str:
    result = called(*arguments, stdin=stdin, **environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str, stdin: bytes = b"") -> str:
    result = called(*arguments, stdin=stdin)
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("magnetar: ")
    return str(result.stderr)


def test_a_token_of_pulsars_byte_for_byte() -> None:
    """The same secret and subject make the same token (rule 12.2)."""
    for option in ("-sk", "--secret-key"):
        assert done("create", "-s", "alice", option, f"data:;base64,{PULSAR_SECRET}") == f"{PULSAR_TOKEN}\n"
    until = json.loads(done("show", PULSAR_TOKEN_512).partition("---\n")[2])["exp"]
    assert done("validate", "-sk", PULSAR_SECRET_512, PULSAR_TOKEN_512) == f'{{"sub": "alice", "exp": {until}}}\n'


def test_keys_of_pulsars() -> None:
    for public, token in ((PULSAR_PUBLIC_ES384, PULSAR_TOKEN_ES384), (PULSAR_PUBLIC_RS256, PULSAR_TOKEN_RS256)):
        assert done("validate", "-pk", public, token) == '{"sub": "alice"}\n'
    made = done("create", "-s", "bob", "-a", "ES384", "-pk", PULSAR_PRIVATE_ES384).strip()
    assert done("validate", "--public-key", PULSAR_PUBLIC_ES384, made) == '{"sub": "bob"}\n'


@pytest.mark.parametrize(("algorithm", "size"), [("HS256", 32), ("HS384", 48), ("HS512", 64)])
def test_secret_keys(tmp_path: Path, algorithm: str, size: int) -> None:
    """A key file has the raw bytes, or base64, without a line break, and is its owner's only."""
    raw, text = tmp_path / "raw", tmp_path / "text"
    assert done("create-secret-key", "-a", algorithm, "--output", str(raw)) == ""
    done("create-secret-key", "-a", algorithm, "-b", "-o", str(text))
    assert len(raw.read_bytes()) == size
    assert len(base64.b64decode(text.read_bytes(), validate=True)) == size
    assert stat.S_IMODE(raw.stat().st_mode) == 0o600
    token = done("create", "-s", "a", "-sk", f"file://{raw}").strip()
    assert json.loads(done("show", token).partition("\n")[0]) == {"alg": algorithm}
    assert done("validate", "-sk", f"file:{raw}", token) == '{"sub": "a"}\n'
    made = called("create-secret-key", "-a", algorithm).stdout_bytes
    assert len(made) == size
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["raw", "text"]


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "ES384", "ES512"])
def test_key_pairs(tmp_path: Path, algorithm: str) -> None:
    private, public = tmp_path / "private", tmp_path / "public"
    files = ("--output-private-key", str(private), "--output-public-key", str(public))
    assert done("create-key-pair", "-a", algorithm, *files) == ""
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    token = done("create", "-s", "a", "-a", algorithm, "-pk", str(private)).strip()
    assert json.loads(done("show", token).partition("\n")[0]) == {"alg": algorithm}
    assert done("validate", "-a", algorithm, "-pk", str(public), token) == '{"sub": "a"}\n'
    assert "no public key" in refused("validate", "-pk", str(private), token)


def test_nothing_is_replaced_silently(tmp_path: Path) -> None:
    """A file that is there stays as it is, and of a pair neither is written, unless --overwrite."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("precious")
    assert f"{old} exists already; --overwrite" in refused("create-secret-key", "-o", str(old))
    pair = ("create-key-pair", "-a", "ES256", "--output-private-key", str(new), "--output-public-key", str(old))
    assert "exists already" in refused(*pair)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert "exists already" in refused("create-secret-key", "-o", str(link))
    assert "same file" in refused(*pair[:-1], str(new))
    assert f"there is no directory {tmp_path}/missing; make it" in refused(
        "create-secret-key", "-o", str(tmp_path / "missing" / "key")
    )
    assert old.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "old"]
    done(*pair, "--overwrite")
    assert old.read_bytes() != b"precious"
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "new", "old"]


def test_where_tokens_and_keys_are_read_from(tmp_path: Path) -> None:
    token = signed({"sub": "a"})
    file = tmp_path / "app.token"
    file.write_text(f"{token}\n")
    key = ("-sk", inline(SECRET))
    for arguments, stdin, variable in (
        ([token], b"", ""), (["-i"], token.encode(), ""), (["--stdin"], f"{token}\n".encode(), ""),
        (["-"], token.encode(), ""), (["-f", str(file)], b"", ""), ([], b"", token),
    ):  # fmt: skip
        environment = {"TOKEN": variable} if variable else {}
        assert done("validate", *key, *arguments, stdin=stdin, **environment) == '{"sub": "a"}\n'
    assert done("validate", "-sk", "-", token, stdin=SECRET) == '{"sub": "a"}\n'
    encoded = base64.b64encode(SECRET).decode()
    assert done("validate", "-sk", "env:KEY", token, KEY=encoded) == '{"sub": "a"}\n'
    assert "pass a token as an argument" in refused("validate", *key)
    assert "nothing on standard input" in refused("validate", "-sk", "-", token)
    assert "No such file" in refused("validate", *key, "-f", str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("10m", 600), ("1h", 3600), ("3d", 259_200), ("2W", 1_209_600)]
)
def test_expiry(text: str, seconds: int) -> None:
    claims = json.loads(done("show", done("create", "-s", "a", "-sk", inline(SECRET), "-e", text)).partition("---")[2])
    plain = json.loads(done("show", done("create", "-s", "a", "-sk", inline(SECRET), "-e", "0")).partition("---")[2])
    assert seconds - 1 <= claims["exp"] - plain["exp"] <= seconds
    assert "has expired" in refused("validate", "-sk", inline(SECRET), signed({"sub": "a", "exp": 1}))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "-s", "a"], "pass one of --secret-key or --private-key"),
        (["create", "-s", "a", "-sk", "x", "-pk", "y"], "pass one of --secret-key or --private-key"),
        (["validate", "x"], "pass one of --secret-key or --public-key"),
        (["create", "-s", "a", "-sk", inline(SECRET), "-e", "1x"], "--expiry-time: '1x' is not accepted"),
        (["create", "-s", "a", "-sk", inline(SECRET), "-e", "-1h"], "--expiry-time: '-1h' is not accepted"),
        (["create", "-s", "", "-sk", inline(SECRET)], "--subject is empty"),
        (["create", "-s", "a", "-sk", inline(SECRET), "-hs", "alg=none"], "--headers: 'alg=none' is not accepted"),
        (["create", "-s", "a", "-sk", inline(b"short")], "--secret-key: a secret of 40 bits"),
        (["create", "-s", "a", "-a", "HS512", "-sk", inline(bytes(32))], "too short for HS512"),
        (["create", "-s", "a", "-sk", "/etc/no/such/key"], "--secret-key: there is no file /etc/no/such/key"),
        (["create-secret-key", "-a", "RS256"], "--signature-algorithm: RS256 has a key pair"),
        (["show", "not a token"], "not three parts"),
    ],
)
def test_mistakes(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)


def test_headers_and_an_id() -> None:
    token = done("create", "-s", "a", "-sk", inline(SECRET), "-hs", "kid=k1", "-hs", "x=1=2", "--id", "4711")
    header, _, claims = done("show", stdin=token.encode(), TOKEN=token).partition("---")
    assert json.loads(header) == {"alg": "HS512", "kid": "k1", "x": "1=2"}
    assert json.loads(claims) == {"sub": "a", "jti": "4711"}


def test_validate_refuses_what_a_broker_refuses() -> None:
    signatures = ("algorithm", "RS256", "another secret", "brings", "critical", "signature", "claims changed")
    for one in forged(0):
        if one.name.startswith(signatures):
            refused("validate", "-sk", inline(SECRET), "-i", stdin=one.token.encode())


def test_what_no_terminal_should_see_is_escaped() -> None:
    shown = done("show", signed_json(b'{"sub":"\x1b[2J\xff"}'))
    assert "\x1b" not in shown
    assert "\\x1b[2J\\xff" in shown


def test_revoking(tmp_path: Path) -> None:
    """The entry that is printed or added revokes the token, however its signature is written."""
    token = signed({"sub": "a"})
    listed = tmp_path / "revoked"
    listed.write_bytes(b"jti 1")
    entry = done("revoke", token)
    assert done("revoke", token, "--list", str(listed)) == ""
    for _ in range(2):
        done("revoke", signed({"sub": "b"}), "--list", str(listed))
        assert done("revoke", token, "--list", str(listed)) == ""
    assert listed.read_text().splitlines()[:2] == ["jti 1", entry.strip()]
    assert len(listed.read_text().splitlines()) == 3, "each once, however often it is revoked"
    assert len(RevocationList(str(listed))) == 3
    assert Identity("a", "token", fingerprint=entry.split()[1]) in RevocationList(str(listed))


@pytest.mark.parametrize("place", [".", "..", "keys", "keys/.."])
def test_a_directory_is_no_place_for_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """With --overwrite it ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keys").mkdir()
    for more in ((), ("--overwrite",)):
        assert "is a directory; name a file in it" in refused("create-secret-key", "-o", place, *more)
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]


def test_an_empty_name_or_one_with_a_slash_at_its_end_is_no_file(tmp_path: Path) -> None:
    for place, said in (("", "is a variable not set?"), (f"{tmp_path}/keys/", "is the name of a directory")):
        for words in (
            ("create-secret-key", "-o", place, "--overwrite"),
            ("create-key-pair", "--output-private-key", place, "--output-public-key", f"{tmp_path}/p"),
            ("revoke", PULSAR_TOKEN, "--list", place),
        ):
            result = called(*words)
            assert result.exit_code == 2 and said in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_device_is_not_replaced_by_a_key(tmp_path: Path) -> None:
    """As root ``-o /dev/stdout --overwrite`` made that a file with a key."""
    device, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(device)
    link.symlink_to(device)
    for place in (device, link):
        assert "is no file that could be replaced" in refused("create-secret-key", "-o", str(place), "--overwrite")
    assert device.is_fifo() and link.is_symlink()


@pytest.mark.parametrize(("name", "why"), [("missing", "No such file or directory"), ("", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named_without_a_number(name: str, why: str, tmp_path: Path) -> None:
    """It was "[Errno 2] No such file or directory: '/x'"."""
    key = ("--secret-key", "data:;base64," + "A" * 44)
    file = str(tmp_path / name)
    assert refused("validate", *key, "--token-file", file) == f"magnetar: {file}: {why}\n"


def test_what_the_disk_refuses_is_named_and_leaves_things_as_they_were(tmp_path: Path) -> None:
    assert f"{tmp_path}/none/key: there is no directory" in refused("create-secret-key", "-o", f"{tmp_path}/none/key")
    assert "magnetar: /dev/full: No space" in refused("revoke", PULSAR_TOKEN, "--list", "/dev/full")
    listed = tmp_path / "revoked"
    listed.write_text("sub alice\n")
    with _files_of_at_most(40):
        assert f"magnetar: {listed}: No space" in refused("revoke", PULSAR_TOKEN, "--list", str(listed))
        assert listed.read_text() == "sub alice\n"


def test_one_key_of_a_pair_does_not_stay_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, place: Path) -> None:
        if place.name == "public":
            raise FileExistsError(17, "File exists", str(source), None, str(place))
        source.rename(place)

    monkeypatch.setattr("os.link", link)
    words = ("--output-private-key", f"{tmp_path}/private", "--output-public-key", f"{tmp_path}/public", "-a", "ES256")
    assert "has come into being meanwhile" in refused("create-key-pair", *words)
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_a_token_and_an_empty_id_are_named(tmp_path: Path) -> None:
    (tmp_path / "alice.token").write_text(PULSAR_TOKEN)
    assert "--token-file reads it" in refused("show", f"{tmp_path}/alice.token")
    (tmp_path / "empty").write_text("\n")
    assert f"{tmp_path}/empty is empty; --token-file takes" in refused("show", "--token-file", f"{tmp_path}/empty")
    assert "--id is empty" in refused("create", "-s", "alice", "-sk", PULSAR_SECRET, "--id", "")


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
