"""The command line: names, help, and one place where errors become messages and exit codes."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from patchq.commands.context import Settings
from patchq.errors import EnvironmentLacksError, PatchqError
from patchq.git.run import strip_environment
from patchq.text import shown
from patchq.ui.output import drop_stdout

INTERRUPTED = 130

COMMANDS = {
    "upstream": ("upstream", "Bases and their sources: list, fetch, add."),
    "status": ("status", "The series; for a checkout, how far it has it."),
    "show": ("show", "One patch as a page: why, files, tests, verdicts."),
    "apply": ("apply", "Put the patches on a checkout, all or nothing."),
    "unapply": ("apply", "Take the patches off a checkout again."),
    "verify": ("verify", "Prove that a checkout, or an install, is the patched tree."),
    "build": ("build", "Rebuild what the patches oblige to, and install it."),
    "deps": ("deps", "Which patch needs which, derived and declared."),
    "forecast": ("forecast", "What becomes of each patch on each base."),
    "verdict": ("verdict", "A person's rulings on what became of a patch."),
    "rebase": ("rebase", "Carry the series to another base."),
    "refresh": ("refresh", "Write the series anew from a checkout."),
    "new": ("edit", "Begin a patch."),
    "import": ("import_:import_", "Take in a patch file, a mailbox, commits or a branch."),
    "fold": ("edit", "Make one patch part of another."),
    "split": ("edit", "Make two patches of one."),
    "rename": ("edit", "Call a patch otherwise."),
    "move": ("edit", "Put a patch elsewhere in the order."),
    "drop": ("edit", "Take a patch out of the series."),
    "log": ("history", "What was done, newest first."),
    "undo": ("history", "Take a command back."),
    "test": ("test:run", "Prove each patch by its own tests."),
    "lint": ("lint", "Upstream's own rules on each patch."),
    "gpu": ("gpu", "What can be said of a card without it."),
    "bundle": ("bundle", "Take tests to a machine with a card and without network."),
    "evidence": ("evidence", "Recorded results: what is proven where."),
    "export": ("export", "Hand the patches on: branches, overlay, quilt, mailbox."),
    "report": ("report", "A page of it all."),
    "doctor": ("doctor", "What this machine can run, and what is missing."),
}
"""Each command's module in `patchq.commands` (and its function, where that has another name), and what the list says of it."""


class Commands(TyperGroup):
    """The commands, each imported when it is called and not before."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name, short_help=text, rich_markup_mode=None)
            for name, (_, text) in COMMANDS.items()
        }

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, imported; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        place, text = COMMANDS[cmd_name]
        name, _, function = place.partition(":")
        module = importlib.import_module(f"patchq.commands.{name}")
        if hasattr(module, "app"):
            return get_command(module.app)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name, short_help=text)(getattr(module, function or cmd_name))
        return get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, from what is said here alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(
    name="patchq",
    cls=Commands,
    help="Feature patches over upstream vLLM: apply them, prove them, carry them to the next release.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from patchq import __version__

        typer.echo(f"patchq {__version__}")
        raise typer.Exit


@app.callback()
def top(
    context: typer.Context,
    root: Annotated[
        Optional[Path], typer.Option(metavar="DIR", help="The project: where series/ and upstream.lock are.")  # noqa: UP045
    ] = None,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Set up what every command shares."""
    context.obj = Settings(root)


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(50_000, 50, 50)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code: 0 yes, 1 no, 2 bad input, 3 the environment lacks something, 130 interrupted."""
    strip_environment()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    as_json = "--json" in arguments
    try:
        code = app(arguments, prog_name="patchq", standalone_mode=False)
        _flush()
    except PatchqError as error:
        return _report(error, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as stop:
        code = stop.code
    except OSError as error:
        where = error.filename or "the file system"
        lacking = EnvironmentLacksError(
            f"{where}: {error.strerror or error}.", "Mend that and run this again."
        )
        code = _report(lacking, as_json=as_json)
        drop_stdout()
    except Exception as error:  # noqa: BLE001
        return _report_usage(error, as_json=as_json) if _is_usage(error) else _report_bug(as_json=as_json)
    if code == INTERRUPTED:
        print("patchq: interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _flush() -> None:
    """Write out what was printed; that the reader has gone away is no error, whatever the answer was."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()


def _is_usage(error: Exception) -> bool:
    """Whether Typer raised it about the words on the command line (its base class has no public name)."""
    return isinstance(error, typer.BadParameter.__mro__[2])


def _report_usage(error: Any, *, as_json: bool) -> int:
    if as_json:
        _print_error(error.format_message(), "See patchq --help, or --help behind the command.")
    error.show()
    return int(error.exit_code)


def _report(error: PatchqError, *, as_json: bool) -> int:
    if as_json:
        _print_error(error.message, error.remedy, error.files)
    text = shown(f"patchq: {error.message}\n  {error.remedy}")
    print(text.encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
    return error.exit_code


def _print_error(message: str, remedy: str, files: tuple[str, ...] = ()) -> None:
    """The one JSON document of a call that failed; where stdout itself is what failed, there is none."""
    from patchq.ui.output import print_json

    try:
        print_json({"error": {"message": message, "remedy": remedy, "files": list(files)}})
        _flush()
    except OSError:
        drop_stdout()


def _report_bug(*, as_json: bool) -> int:
    """A mistake in patchq itself: one sentence for the person, the traceback in a file for whoever mends it."""
    import traceback

    from patchq.cache import cache_dir

    log = cache_dir() / "crash.log"
    log.write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
    last = traceback.format_exc().strip().rsplit("\n", 1)[-1]
    bug = EnvironmentLacksError(
        f"patchq itself failed ({last}).", f"This is a bug; please report it with {log}."
    )
    return _report(bug, as_json=as_json)
