"""A set of commands whose help answers at once: plain text, without Rich, and without pydantic.

Typer takes Rich for help and errors if it is there, which is two thirds of a help page's time, and pydantic for the
value of each parameter that is no plain flag. In a group above the command whose help is wanted, that was the group's
own option ``--help``, although it was not given.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn

import typer
from typer.core import TyperGroup

PIPE_CLOSED: Final = 141
"""What a shell shows of a program that a closed pipe ended."""
INTERRUPTED: Final = 130
"""What a shell shows of a program that Ctrl-C ended."""
HELPED: Final = {"help_option_names": ["--help", "-h"]}
"""Context settings of a set of commands, and of one with settings of its own: what asks for help, as everywhere."""
_CLOSED: Final[set[int]] = set()
"""Standard streams that were closed when the program began."""
_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def ending_signals() -> list[signal.Signals]:
    """Return what ends a program in order besides Ctrl-C: SIGTERM, and SIGHUP unless it is ignored, as by nohup."""
    hears = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGHUP] if hears else [signal.SIGTERM]


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Have those raise KeyboardInterrupt within, too, so that a command cleans up."""
    numbers = ending_signals() if threading.current_thread() is threading.main_thread() else []
    before = [(number, signal.signal(number, signal.default_int_handler)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextlib.contextmanager
def interruption_said(left: str) -> Iterator[None]:
    """Have them end a command within: with a line that says what is ``left``, and `INTERRUPTED`."""
    try:
        with ended_as_by_ctrl_c():
            yield
    except KeyboardInterrupt:
        say_interrupted(left)
        raise typer.Exit(INTERRUPTED) from None


def say_interrupted(left: str) -> None:
    """Print the last line of a command that was broken off."""
    complain(f"interrupted; {left}")


def written(run: Callable[[], object]) -> None:
    """Run a program and write what it printed. What cannot be written ends it with one line and 1, a closed pipe
    quietly.

    The interpreter writes the rest when it ends, and could then only show a traceback.
    """
    open_standard_streams()
    try:
        try:
            run()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # before a command has said what it does then, as while it is imported
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        _let_go_of_pipe()
    except SystemExit as ending:
        if isinstance(ending.__context__, BrokenPipeError):  # the commands' own library makes it 1, an error
            _let_go_of_pipe()
        raise
    except OSError as error:
        if not output_refused(error):
            raise
        let_go_of_output()
        with contextlib.suppress(OSError):
            sys.stderr.write(f"magnetar: the output cannot be written: {error.strerror}\n")
        raise SystemExit(1) from None


def complain(text: object, *, lead: str = "magnetar: ") -> None:
    """Print an error, or what belongs to one, as one line of standard error. Names in it that others chose, or that a
    script was given, begin no line of their own and do nothing to a terminal, now or from a file."""
    from magnetar.runtime.harmless_text import one_line

    if isinstance(text, OSError) and text.strerror:  # its own words begin with a number
        text = f"{os.fsdecode(text.filename)}: {text.strerror}" if text.filename else text.strerror
    sys.stderr.write(f"{lead}{one_line(str(text))}\n")
    sys.stderr.flush()


def _let_go_of_pipe() -> NoReturn:
    let_go_of_output()
    raise SystemExit(PIPE_CLOSED) from None


def output_refused(error: Exception) -> bool:
    """Whether an error is that of a disk which takes no output; one that names a file is about that."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None


def open_standard_streams() -> None:
    r"""Have all three, as /dev/null where the shell closed one (``>&-``): the next file that is opened would get its
    number, and what is printed.

    Characters that their encoding lacks are printed as ``\xfc``: names and messages may have any, wherever they go. So
    are those that act on a terminal where standard error is one.
    """
    with contextlib.suppress(OSError):  # where there is no /dev/null
        number = os.open(os.devnull, os.O_RDWR)
        while number <= 2:
            _CLOSED.add(number)
            os.set_inheritable(number, True)
            number = os.open(os.devnull, os.O_RDWR)
        os.close(number)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr.isatty():
        # errors name topics, files and what else others chose
        from magnetar.runtime.harmless_text import HarmlessStream

        sys.stderr = HarmlessStream(sys.stderr)


def output_was_closed() -> bool:
    """Whether the shell closed standard output, so that nobody will ever see what is printed; ``> /dev/null`` does not:
    that is a wish."""
    return 1 in _CLOSED


def not_text(arguments: Sequence[str], bytes_follow: Sequence[str] = ()) -> str | None:
    """What is wrong with the first argument that is no UTF-8, in words; None if all are.

    Python has such bytes as lone surrogates, which no request, no name and no line of a log can hold. ``bytes_follow``:
    flags whose values may be any bytes.
    """
    before = ""
    for argument in arguments:
        wanted = before not in bytes_follow and not argument.startswith(tuple(bytes_follow))
        if wanted and not _is_text(argument):
            shown = argument.encode(errors="surrogateescape")[:80]
            return f"{shown!r} is not UTF-8: arguments are text, file names too; is the terminal's encoding another?"
        before = argument
    return None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def let_go_of_output() -> None:
    """Have what is still to be printed go nowhere: it would be tried again, and fail again, at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def directory(text: object) -> Path:
    """Read a parameter that names a directory. Raises BadParameter for an empty one, which would be the current one."""
    return Path(directory_name(text))


def directory_name(text: object) -> str:
    """Do the same for a parameter that is passed on as a text. A leading ``~`` is the home directory: shells leave that
    of ``--data=~/x`` as it is, and a directory whose name is a tilde is easily removed with all of the home directory.
    """
    name = os.path.expanduser(str(text))
    if not name:
        raise typer.BadParameter("it is empty; is a variable not set? The current directory is named by a dot")
    return name


def found_from_here(text: object) -> str:
    """Read the name of a directory that is needed at once. Raises BadParameter also for one that leads nowhere."""
    name = directory_name(text)
    why = lost(name)
    if why:
        raise typer.BadParameter(why)
    return name


def lost(name: str) -> str:
    """Why a name leads nowhere, whatever is on the disk, and what to do; empty if it leads somewhere."""
    if not os.path.isabs(name):
        try:
            os.getcwd()
        except FileNotFoundError:
            return (
                f"{name} lies in the current directory, which was removed; change to a directory that exists, or name "
                "the whole path"
            )
    return ""


def file_name(text: object) -> Path:
    """Read a parameter that names a file; ``~`` as above. Raises BadParameter for an empty one, and for what ends as a
    directory does."""
    name = os.path.expanduser(str(text))
    if not name:
        raise typer.BadParameter("it is empty; is a variable not set?")
    if name.endswith("/"):
        raise typer.BadParameter(f"{name} is the name of a directory; name a file in it")
    return Path(name)


class PlainGroup(TyperGroup):
    """A group whose option ``--help`` is false, instead of unknown, where it is not given."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None and option.default is None:
            option.default = False
        return option


def commands(help: str, group: type[PlainGroup] = PlainGroup, *, example: str = "") -> typer.Typer:
    """An empty set of commands; the example ends its help page."""
    return typer.Typer(
        help=help,
        epilog=example or None,
        cls=group,
        context_settings=HELPED,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def call_or_show_help(app: typer.Typer, arguments: list[str], name: str, *, alone: bool) -> None:
    """Call a command. One that is called without any argument, and does nothing ``alone``, shows its help and fails: a
    variable that was to name something may not be set."""
    if arguments or alone:
        app(arguments, prog_name=name)
        return
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
        app(["--help"], prog_name=name)
    raise typer.Exit(2)


class HeadedGroup(PlainGroup):
    """A group whose help lists its commands under headings, each with its whole first sentence."""

    headings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names of commands by heading, in order; commands without a heading come last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        named = {name for names in self.headings.values() for name in names}
        others = tuple(name for name in shown if name not in named)
        width = max(map(len, shown), default=0)
        for heading, names in {**self.headings, "Others": others}.items():
            rows = [(name.ljust(width), shown[name].get_short_help_str(200)) for name in names if name in shown]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
