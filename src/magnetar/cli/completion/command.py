"""``magnetar completion``: the scripts by which shells complete command lines."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from magnetar.runtime.command_line import commands

app = commands(
    "Completion for bash, zsh and fish; names of topics and the like are asked of the broker, for a second at most.",
    example="Example: magnetar completion bash",
)

_BASH: Final = """\
_magnetar() {
    local IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=($(magnetar completion words --line --breaks "$COMP_WORDBREAKS" -- "$line" 2>/dev/null))
    [[ ${COMPREPLY[0]} != */ ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _magnetar magnetar
"""
_ZSH: Final = """\
#compdef magnetar
_magnetar() {
    local -a found
    found=("${(@f)$(magnetar completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ "${found[1]}" == */ ]]; then compadd -S '' -a found
    elif (( ${#found} )) && [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _magnetar magnetar
"""
_FISH: Final = """\
function __magnetar_words
    set -l before (commandline -opc)
    set -l found (magnetar completion words -- $before[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]; printf '%s\\n' $found; else; __fish_complete_path (commandline -ct); end
end
complete -c magnetar -f -a '(__magnetar_words)'
"""


@app.callback()
def completion() -> None:
    """Completion for bash, zsh and fish.

    Example: eval "$(magnetar completion bash)"
    """


@app.command()
def bash() -> None:
    """Print the script for bash. In ~/.bashrc: eval "$(…)". Example: magnetar completion bash"""
    typer.echo(_BASH, nl=False)


@app.command()
def zsh() -> None:
    """Print the script for zsh. In ~/.zshrc, after compinit: eval "$(…)". Example: magnetar completion zsh"""
    typer.echo(_ZSH, nl=False)


@app.command()
def fish() -> None:
    """Print the script for fish. To be piped into source. Example: magnetar completion fish"""
    typer.echo(_FISH, nl=False)


@app.command(hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def words(
    context: typer.Context,
    line: Annotated[bool, typer.Option("--line", help="They are one text, which begins with the program.")] = False,
    breaks: Annotated[str, typer.Option("--breaks", help="Characters at which bash parts words, too.")] = "",
) -> None:
    """Print what the last of some words may become. Example: magnetar completion words adm"""
    from magnetar.cli.completion.candidates import candidates, words_of
    from magnetar.runtime.harmless_text import one_line

    given = words_of(" ".join(context.args))[1:] if line else context.args
    # bash replaces what follows the last of them only
    kept = max((given[-1].rfind(one) + 1 for one in ":=" if one in breaks), default=0) if given else 0
    typer.echo("".join(f"{one_line(one[kept:])}\n" for one in candidates(given)), nl=False)
