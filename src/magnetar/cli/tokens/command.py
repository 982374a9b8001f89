"""``magnetar tokens``: makes keys and tokens, shows, validates and revokes them.

Key files and tokens are those of ``bin/pulsar tokens``, in both directions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.runtime.command_line import commands, complain, file_name, output_refused

app = commands(
    "Keys and tokens, with the flags of Apache Pulsar's `pulsar tokens`.",
    example="Example: magnetar tokens create-secret-key --output secret.key",
)

_KEY = "file:///path, a path, data:;base64,..., base64, env:NAME or - for standard input"
Argument = Annotated[
    str | None, typer.Argument(metavar="[TOKEN]", help="The token, which others may see in the list of processes.")
]
Stdin = Annotated[bool, typer.Option("--stdin", "-i", help="Read the token from standard input.")]
File = Annotated[
    Path | None,
    typer.Option("--token-file", "-f", parser=file_name, help="Read the token from a file.", metavar="FILE"),
]
Secret = Annotated[str | None, typer.Option("--secret-key", "-sk", help=f"The secret key: {_KEY}.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]
Algorithm = Literal[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"
]
Chosen = Annotated[
    Algorithm | None, typer.Option("--signature-algorithm", "-a", help="The algorithm; without it the key's own.")
]


@contextmanager
def _errors_reported() -> Iterator[None]:
    try:
        yield
    except (MagnetarError, OSError) as error:
        if isinstance(error, BrokenPipeError) or output_refused(error):
            raise  # the entry point says it, as for all commands
        complain(error)
        raise typer.Exit(1) from None


@app.command("create-secret-key", epilog="Example: magnetar tokens create-secret-key --output secret.key")
def create_secret_key(
    algorithm: Annotated[
        Algorithm, typer.Option("--signature-algorithm", "-a", help="HS256, HS384 or HS512.")
    ] = "HS256",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", parser=file_name, help="Write it to a new file, for its owner only.", metavar="FILE"
        ),
    ] = None,
    base64: Annotated[bool, typer.Option("--base64", "-b", help="Encode it in base64.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Create a secret key, on standard output without --output."""
    from magnetar.cli.tokens.key_files import KeyFile, write
    from magnetar.security.tokens.signer import new_secret

    with _errors_reported():
        content = new_secret(algorithm, in_base64=base64)
        if output is None:
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        else:
            write([KeyFile(output, content, 0o600)], overwrite=overwrite)


@app.command(
    "create-key-pair",
    epilog="Example: magnetar tokens create-key-pair -a ES256 --output-private-key private.key "
    "--output-public-key public.key",
)
def create_key_pair(
    private: Annotated[
        Path,
        typer.Option(
            "--output-private-key", parser=file_name, help="A new file for the private key (PKCS 8).", metavar="FILE"
        ),
    ],
    public: Annotated[
        Path,
        typer.Option(
            "--output-public-key", parser=file_name, help="A new file for the public key (X.509).", metavar="FILE"
        ),
    ],
    algorithm: Annotated[
        Algorithm, typer.Option("--signature-algorithm", "-a", help="RS, PS or ES with 256, 384 or 512.")
    ] = "RS256",
    overwrite: Overwrite = False,
) -> None:
    """Create a private and a public key."""
    from magnetar.cli.tokens.key_files import KeyFile, write
    from magnetar.security.tokens.signer import new_pair

    with _errors_reported():
        pair = new_pair(algorithm)
        write([KeyFile(private, pair.private, 0o600), KeyFile(public, pair.public, 0o644)], overwrite=overwrite)


@app.command(
    "create", epilog="Example: magnetar tokens create --secret-key secret.key --subject alice --expiry-time 30d"
)
def create(
    subject: Annotated[str, typer.Option("--subject", "-s", help="The subject, which is the role.")],
    expiry: Annotated[
        str | None, typer.Option("--expiry-time", "-e", help="How long it counts: 30s, 10m, 1h, 3d, 2w, 10y.")
    ] = None,
    secret: Secret = None,
    private: Annotated[str | None, typer.Option("--private-key", "-pk", help=f"The private key: {_KEY}.")] = None,
    algorithm: Chosen = None,
    headers: Annotated[
        list[str] | None, typer.Option("--headers", "-hs", help="One header, key=value.", metavar="KEY=VALUE")
    ] = None,
    token_id: Annotated[str | None, typer.Option("--id", help="The claim jti, by which it can be revoked.")] = None,
) -> None:
    """Create a token, on standard output."""
    from magnetar.cli.tokens import input as source
    from magnetar.runtime.clock import SystemClock
    from magnetar.security.tokens.claims import seconds_of
    from magnetar.security.tokens.keys import private_key
    from magnetar.security.tokens.signer import secret_signer, sign

    with _errors_reported():
        _one_of(("--secret-key", secret), ("--private-key", private))
        if private is not None:
            signer = private_key(source.secret(private, "--private-key"), algorithm or "", "--private-key")
        else:
            signer = secret_signer(source.secret(secret or "", "--secret-key"), algorithm or "", "--secret-key")
        claims: dict[str, object] = {"sub": subject}
        if expiry is not None:
            claims["exp"] = SystemClock().now_ms() // 1000 + seconds_of(expiry, "--expiry-time")
        if token_id is not None:
            if not token_id.strip():
                raise InvalidValueError("--id is empty; is a variable not set?")
            claims["jti"] = token_id
        typer.echo(sign(claims, signer, headers or []))


@app.command("show", epilog="Example: magnetar tokens show --token-file alice.token")
def show(argument: Argument = None, stdin: Stdin = False, file: File = None) -> None:
    """Show header and claims of a token, of which nothing is checked."""
    from magnetar.cli.tokens import input as source
    from magnetar.security.tokens.validation import shown

    with _errors_reported():
        header, claims = shown(source.token(argument, stdin=stdin, file=file))
        typer.echo(f"{header}\n---\n{claims}")


@app.command("validate", epilog="Example: magnetar tokens validate --secret-key secret.key --token-file alice.token")
def validate(
    argument: Argument = None,
    stdin: Stdin = False,
    file: File = None,
    secret: Secret = None,
    public: Annotated[str | None, typer.Option("--public-key", "-pk", help=f"The public key: {_KEY}.")] = None,
    algorithm: Chosen = None,
) -> None:
    """Check signature and time of a token, and print its claims; exit 1 if it does not count."""
    import json

    from magnetar.cli.tokens import input as source
    from magnetar.runtime.clock import SystemClock
    from magnetar.security.tokens.claims import ClaimRules, check_time
    from magnetar.security.tokens.keys import public_key, secret_key
    from magnetar.security.tokens.validation import parse, verify

    with _errors_reported():
        _one_of(("--secret-key", secret), ("--public-key", public))
        if public is not None:
            key = public_key(source.key(public, "--public-key"), algorithm or "", "--public-key")
        else:
            key = secret_key(source.secret(secret or "", "--secret-key"), "--secret-key")
        claims = verify(parse(source.token(argument, stdin=stdin, file=file)), key)
        check_time(claims, ClaimRules(), SystemClock().now_ms() / 1000)
        typer.echo(json.dumps(claims))


@app.command("revoke", epilog="Example: magnetar tokens revoke --token-file alice.token --list revoked")
def revoke(
    argument: Argument = None,
    stdin: Stdin = False,
    file: File = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--list", parser=file_name, help="Add it to this file, a broker's tokenRevocationListFile.", metavar="FILE"
        ),
    ] = None,
) -> None:
    """Print the entry of a token for a revocation list, or add it to one."""
    from magnetar.cli.tokens import input as source
    from magnetar.cli.tokens.key_files import add_line
    from magnetar.security.tokens.validation import fingerprint, parse

    with _errors_reported():
        entry = f"sha256 {fingerprint(parse(source.token(argument, stdin=stdin, file=file)).text)}"
        if listed is None:
            typer.echo(entry)
            return
        add_line(listed, entry)


def _one_of(*options: tuple[str, str | None]) -> None:
    if sum(value is not None for _, value in options) != 1:
        names = " or ".join(name for name, _ in options)
        raise InvalidValueError(f"pass one of {names}")


if __name__ == "__main__":
    app(prog_name="magnetar tokens")
