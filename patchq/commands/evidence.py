"""patchq evidence: what is proven where."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from patchq.commands.context import group, load
from patchq.commands.options import DryRun, Json, PatchIds

app = group("Recorded results: what is proven where.", invoke_without_command=True)


@app.callback()
def evidence(context: typer.Context, json: Json = False) -> None:
    """Recorded results: what is proven where; without a subcommand, list them."""
    if context.invoked_subcommand is None:
        list_(context, json=json)


@app.command("list")
def list_(context: typer.Context, ids: PatchIds = None, json: Json = False) -> None:
    """List the recorded results, and whether each is about the patch as it stands now."""
    from patchq.series.evidence import list_evidence, list_unproven
    from patchq.ui.output import print_json, print_line, print_table

    series = load(context)
    chosen = [series.find(name).id for name in ids] if ids else [p.id for p in series.patches]
    records = list_evidence(series, dict.fromkeys(chosen))
    unproven = list_unproven(series, dict.fromkeys(chosen), records)
    if json:
        print_json({"results": records, "not_run": unproven})
        return
    rows = [
        [
            r["id"],
            r["base"],
            r["gate"],
            str(r.get("target") or "") if r["gate"] != "cpu" else "",
            str(r.get("device", "")),
            _result(r),
            "as it is" if r["current"] else "older",
            str(r.get("date", ""))[:10],
        ]
        for r in records
    ]
    print_table(["patch", "base", "gate", "target", "device", "result", "body", "date"], rows)
    for gap in unproven:
        target = "" if gap["gate"] in {"cpu", "gpu"} else f" for {gap['target']}"
        print_line(f"{gap['id']}: gate {gap['gate']}{target}: {gap['why']}")
    proven = {r["id"] for r in records if r["current"] and r.get("proved")}
    print_line(f"{len(records)} records; {len(proven)} of {len(chosen)} patches are proved as they stand")


@app.command("import")
def import_(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="RESULT", help="The result.json that a bundle's run wrote.")
    ],
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The bundle, where it was not written with this cache."),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Check a result that a bundle brought back, and record what it proves."""
    from patchq.commands.lanes import open_lane
    from patchq.commands.test import describe, print_verdicts
    from patchq.engine.project import changing
    from patchq.testing.evidence import with_evidence
    from patchq.testing.imported import judge_result, read_result
    from patchq.ui.output import print_json, print_line
    from patchq.upstream.store import Store

    series = load(context)
    result = read_result(file, bundle)
    store = Store()
    with store.objects() as objects:
        lane = open_lane(series, store, objects, series.base(result.plan["base"])[0])
        series = series.on(lane.base)
        answer = judge_result(series, objects, lane, result)
    prove = any(r["role"] == "before" for r in result.plan["runs"])
    gates = dict.fromkeys(r["gate"] for r in result.plan["runs"])
    words = [
        "patchq",
        "bundle",
        "--base",
        lane.base,
        f"--{result.plan['mode']}",
        *(["--prove"] if prove else []),
    ]
    command = " ".join([*words, *(f"--gate {gate}" for gate in gates)])
    recorded = []
    if not dry_run:
        with changing(series.root, "recording evidence") as project:
            files = with_evidence(series, lane, answer, command)
            project.commit("evidence import", files)
        recorded = sorted(files)
    left = [v for v in answer.verdicts if v.status not in {"proved", "passed"}]
    if json:
        print_json(
            {
                "base": lane.base,
                "bundle": result.plan["id"],
                "results": [describe(v, lane.base) for v in answer.verdicts],
                "recorded": recorded,
                "not_recorded": [
                    {
                        "id": v.task.patch.id,
                        "gate": v.task.gate,
                        "target": v.task.target,
                        "status": v.status,
                        "why": [*v.against, *v.notes],
                    }
                    for v in left
                ],
            }
        )
    else:
        print_verdicts(answer.verdicts, recorded, prove=prove)
        for v in left:
            print_line(f"not recorded: {v.task.patch.id} at gate {v.task.gate}: {v.status}")
    if any(not v.ok for v in answer.verdicts):
        raise typer.Exit(1)


def _result(record: dict[str, Any]) -> str:
    """What a record says in a word or two."""
    if record.get("mode") != "stock":
        return "proved" if record.get("proved") else "passed"
    if record.get("placed") is False:
        return "cannot be put there"
    counts = record.get("after") or {}
    said = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    return f"stock: {said or 'no tests'}"
