"""The command line: names, help, and one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from patchq.commands import apply, deps, refresh, status, upstream, verify
from patchq.commands.context import Settings
from patchq.errors import EnvironmentLacksError, PatchqError
from patchq.git.run import strip_environment

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
        from importlib.metadata import version

        typer.echo(f"patchq {version('patchq')}")
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
app.command(short_help="Prove that a checkout is the patched tree.")(verify.verify)
app.command(short_help="Which patch needs which, derived and declared.")(deps.deps)
app.command(short_help="Write the series anew from a checkout's commits.")(refresh.refresh)


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code: 0 yes, 1 no, 2 bad input, 3 the environment lacks something, 130 interrupted."""
    strip_environment()
    try:
        app(arguments, prog_name="patchq")
    except PatchqError as error:
        _report(error, as_json="--json" in arguments)
        return error.exit_code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        return 0
    except OSError as error:
        where = error.filename or "the file system"
        lacking = EnvironmentLacksError(
            f"{where}: {error.strerror or error}.", "Mend that and run this again."
        )
        _report(lacking, as_json="--json" in arguments)
        return lacking.exit_code
    except Exception:  # noqa: BLE001
        return _report_bug(as_json="--json" in arguments)
    return 0


def _report(error: PatchqError, *, as_json: bool) -> None:
    if as_json:
        from patchq.ui.output import print_json

        print_json({"error": {"message": error.message, "remedy": error.remedy, "files": list(error.files)}})
    text = f"patchq: {error.message}\n  {error.remedy}"
    print(text.encode("utf-8", "backslashreplace").decode(), file=sys.stderr)


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
    _report(bug, as_json=as_json)
    return bug.exit_code
