"""patchq doctor: what this machine can do, and what is missing."""

from __future__ import annotations

import typer

from patchq.commands.context import load
from patchq.commands.options import Json


def doctor(context: typer.Context, json: Json = False) -> None:
    """Say what this machine can run, what is missing, and what to do about it."""
    from patchq.testing.doctor import examine
    from patchq.ui.output import print_json, print_line, print_table
    from patchq.upstream.store import Store

    series = load(context)
    found = examine(series, Store())
    missing = [c for c in found.checks if c.needed and not c.ok]
    if json:
        print_json(
            {
                "ok": not missing,
                "checks": [c.as_dict() for c in found.checks],
                "gates": found.gates,
                "environments": found.environments,
            },
        )
    else:
        print_table(
            ["check", "", "found"], [[c.name, "ok" if c.ok else "missing", c.detail] for c in found.checks]
        )
        print_table(
            ["gate", "can it be run here?"],
            [[g, (why and f"no: needs {why}") or "yes"] for g, why in found.gates.items()],
        )
        print_table(["base", "test environment"], [[e["base"], e["state"]] for e in found.environments])
        for check in found.checks:
            if not check.ok and check.remedy:
                print_line(f"{check.name}: {check.remedy}")
    if missing:
        raise typer.Exit(3)
