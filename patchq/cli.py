"""The command line: names, help, and one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from patchq.commands import (
    apply,
    build,
    deps,
    doctor,
    edit,
    evidence,
    export,
    forecast,
    history,
    import_,
    lint,
    rebase,
    refresh,
    status,
    test,
    upstream,
    verdict,
    verify,
)
from patchq.commands.context import Settings
from patchq.errors import EnvironmentLacksError, PatchqError
from patchq.git.run import strip_environment
from patchq.ui.output import drop_stdout

INTERRUPTED = 130

app = typer.Typer(
    name="patchq",
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


app.add_typer(upstream.app, name="upstream")
app.command(short_help="The series; for a checkout, how far it has it.")(status.status)
app.command(short_help="Put the patches on a checkout, all or nothing.")(apply.apply)
app.command(short_help="Take the patches off a checkout again.")(apply.unapply)
app.command(short_help="Prove that a checkout, or an install, is the patched tree.")(verify.verify)
app.command(short_help="Rebuild what the patches oblige to, and install it.")(build.build)
app.command(short_help="Which patch needs which, derived and declared.")(deps.deps)
app.command(short_help="What becomes of each patch on each base.")(forecast.forecast)
app.add_typer(verdict.app, name="verdict")
app.command(short_help="Carry the series to another base.")(rebase.rebase)
app.command(short_help="Write the series anew from a checkout.")(refresh.refresh)
app.command(short_help="Begin a patch.")(edit.new)
app.command("import", short_help="Take in a patch file, a mailbox, commits or a branch.")(import_.import_)
app.command(short_help="Make one patch part of another.")(edit.fold)
app.command(short_help="Make two patches of one.")(edit.split)
app.command(short_help="Call a patch otherwise.")(edit.rename)
app.command(short_help="Put a patch elsewhere in the order.")(edit.move)
app.command(short_help="Take a patch out of the series.")(edit.drop)
app.command(short_help="What was done, newest first.")(history.log)
app.command(short_help="Take a command back.")(history.undo)
app.command("test", short_help="Prove each patch by its own tests.")(test.run)
app.command(short_help="Upstream's own rules on each patch.")(lint.lint)
app.add_typer(evidence.app, name="evidence")
app.add_typer(export.app, name="export")
app.command(short_help="What this machine can run, and what is missing.")(doctor.doctor)


def main() -> None:
    """Run the command line and exit with its code."""
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
    text = f"patchq: {error.message}\n  {error.remedy}"
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
