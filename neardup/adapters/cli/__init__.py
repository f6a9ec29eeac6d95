"""The command line. One module a command, loaded when the command is used.

Results go to standard output, talk to standard error. Exit codes: 0 done, 1 internal error,
2 usage, 3 finished but some records were quarantined (or files left), 4 an input file was refused, or
no document came from any, 5 limit, disk or permission, 6 a guard stopped the run, 7 `leaks --fail-on-leaks`
found something, 130 and 143 signals.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from difflib import get_close_matches
from importlib import import_module
from types import FrameType

import click

from neardup import __version__
from neardup.adapters.cli.spelling import spelled
from neardup.checks import share_of
from neardup.errors import GuardStopped, LimitReached, NeardupError, RefusedInput

# Command -> its one-line help, so that listing the commands loads none of them.
COMMANDS: dict[str, str] = {
    "dedupe": "Find near-duplicates, verify each, and keep one per cluster.",
    "apply": "Write what a run keeps, or remove the files that it proved duplicates.",
    "calibrate": "Show what each setting would find in your documents, and which to use.",
    "check": "Check that two runs are equal, or show where they differ.",
    "collection": "Keep documents on disk, and find what is near each as they come.",
    "distance": "Measure how far apart two texts or fingerprints are.",
    "explain": "Explain why two documents are near-duplicates, or not.",
    "fingerprint": "Fingerprint documents from files, folders or standard input.",
    "fit": "Learn how common each feature is in your documents, for later streams.",
    "index": "Build, change and search an index of fingerprints.",
    "join": "Find all pairs of fingerprints within a radius.",
    "leaks": "Find what of a test set is in a training set, also as a quotation.",
    "rejudge": "Decide a finished run anew with another setting, from what it measured.",
    "report": "Write the page that shows what a finished run found.",
    "label": "Ask you, in the terminal, which documents are the same; calibrate learns from it.",
    "plan": "Show how a join would run, and at what cost.",
    "search": "Find what is near one image or text in a collection.",
    "schemes": "List the recipes from document to fingerprint.",
    "timeline": "Show how pages changed from one capture to the next.",
    "undo": "Restore the files that apply removed.",
}

NO_MEMORY = "not enough memory; give the process more, or less input at a time"
# What the loader of shared libraries reports when there is no room for one.
_UNLOADED = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory", "out of memory")
QUARANTINED = 3
REFUSED = 4
LEAKED = 7


class Commands(click.Group):
    """The commands of the table, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = getattr(import_module(f"neardup.adapters.cli.{name}"), "command")  # noqa: B009
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("-V", "--version", is_flag=True, help="Show the version and exit.")
@click.option("--verbose", is_flag=True, help="With --version: also what the core uses on this machine.")
@click.pass_context
def cli(context: click.Context, version: bool, verbose: bool) -> None:
    """Find near-duplicates, prove what was found, remove only what was proved."""
    if version:
        click.echo(f"neardup, version {__version__}")
        if verbose:
            from neardup.machine import facts  # the core is loaded for this only

            for name, value in facts().items():
                click.echo(f"{name:13}{value}")
        context.exit()
    if verbose:
        raise click.UsageError("--verbose says more of --version: neardup --version --verbose", context)
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a letter gets its number instead of an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    code = run(arguments)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        # It was reported; Python would try again, and report it in its own words.
        _forget_output()
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        result = cli.main(args=arguments, prog_name="neardup", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", 130)
    except (BrokenPipeError, SystemExit) as stop:
        # The reader of our output went away, as `head` does; nothing is wrong here. Click makes it
        # an exit with 1, which nobody else makes.
        if isinstance(stop, SystemExit) and stop.code != 1:
            raise
        _forget_output()
        return 0
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "neardup"
        return _say(f"{error.format_message()} (see '{context} --help')", 2)
    except click.ClickException as error:
        return _say(error.format_message(), 2)
    except RefusedInput as error:
        return _say(spelled(error), 4)
    except GuardStopped as error:
        return _say(spelled(error), 6)
    except LimitReached as error:
        return _say(spelled(error), 5)
    except NeardupError as error:
        return _say(spelled(error), 2)
    except MemoryError:
        return _say(NO_MEMORY, 5)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        return _say(_of_system(error), 4)
    except OSError as error:
        return _say(_of_system(error), 5)
    except Exception as error:
        if isinstance(error, ImportError) and any(words in str(error) for words in _UNLOADED):
            return _say(NO_MEMORY, 5)
        if "can't start new thread" in str(error):  # all that Python says of it
            return _say("the system gives no thread; raise the limit of processes (ulimit -u)", 5)
        if os.environ.get("NEARDUP_DEBUG"):
            raise
        return _say(f"internal error: {error!r}; NEARDUP_DEBUG=1 shows where", 1)


def _say(message: str, code: int) -> int:
    click.echo(f"neardup: {visible(message)}", err=True)
    return code


def _of_system(error: OSError) -> str:
    place = f": {os.fsdecode(error.filename)!r}" if error.filename is not None else ""
    return f"{error.strerror or error}{place}"


def _forget_output() -> None:
    """Send what is still in the buffer of standard output nowhere."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check_room(least: int = 512 << 20) -> None:
    """Raise if the process may not have the memory that large libraries need to be loaded.

    Some of them end the process where they find none, and nobody could say why.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < least:
        raise LimitReached(
            f"not enough memory: {limit >> 20} MiB of address space are allowed, at least {least >> 20} are "
            "needed; raise the limit (ulimit -v)"
        )


def share(text: str) -> float:
    """A share from 0 to 1, also written in per cent; whether it is in that range is for others to say."""
    try:
        return share_of(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a share such as 0.85 or 85%") from None


def bytes_of(text: str) -> int:
    """Bytes, also written with K, M or G."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = (text[:-1], units[text[-1:].upper()]) if text[-1:].upper() in units else (text, 1)
    if not number.isascii() or not number.isdigit() or not 1 << 20 <= int(number) * unit <= 1 << 44:
        raise click.UsageError(f"{text!r} is not a size of at least 1M, such as 256M or 4G")
    return int(number) * unit


def visible(text: str) -> str:
    """*text* with control characters escaped, so that no file name can command a terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _terminated(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
