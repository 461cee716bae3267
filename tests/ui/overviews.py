"""Overviews of any size, with text as hostile as wanted."""

from __future__ import annotations

from typing import Any

from patchq.engine.overview import Overview
from patchq.ui.shapes import MEANINGS

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\u202egnp.exe \u2066RTL",
    "w" * 500,
    "a\x00b\x1b[31mc\udcff",
    "{{ 7*7 }} {% raw %}",
    "' onmouseover='document.title=1' \"quoted\" </style></script><!-- ]]>",
)


def cell(verdict: str, detail: str) -> dict[str, Any]:
    return {"verdict": verdict, "detail": detail, "files": [], "disagreement": "", "ruling": None}


def patch(
    number: int, bases: list[str], words: str = "words", depends: tuple[str, ...] = ()
) -> dict[str, Any]:
    verdicts = list(MEANINGS)
    return {
        "id": f"{number:04}-patch",
        "number": f"{number:04}",
        "name": "patch",
        "title": f"[Tag] {words}",
        "why": words,
        "changes": words,
        "depends": list(depends),
        "because": {},
        "tests": [],
        "neighbours": [],
        "limits": [words],
        "upstream": {"state": "absent", "intent": "send", "related": [words]},
        "drop_when": words,
        "target": "sm_86",
        "sizes": {bases[0]: {"files": 1, "added": 10, "removed": 3}},
        "files": {bases[0]: [words]},
        "lanes": {base: {"sha256": "a" * 64, "tree": "b" * 40} for base in (bases[0], bases[-1])},
        "left": {},
        "bases": {},
        "cells": {base: cell(verdicts[(number + i) % 9], words) for i, base in enumerate(bases)},
        "gates": [
            {
                "gate": "cpu",
                "state": ("proved", "stale", "not run")[number % 3],
                "tests": [words],
                "base": bases[0],
                "device": words,
                "target": "sm_86",
                "date": "2026-01-02T03:04:05+00:00",
                "before": {"passed": 0, "failed": 2, "skipped": 0, "errors": 0},
                "after": {"passed": 2, "failed": 0, "skipped": 0, "errors": 0},
                "before_output": [words],
                "command": "patchq test",
                "mode": "alone",
            }
        ],
        "evidence": [],
    }


def overview(count: int, columns: int, words: tuple[str, ...] = ("words",)) -> Overview:
    bases = [f"v0.{n}.0" for n in range(columns)]
    patches = tuple(
        patch(n, bases, words[n % len(words)], (f"{n - 1:04}-patch",) if n > 1 and n % 4 == 0 else ())
        for n in range(1, count + 1)
    )
    needs = [
        {"id": p["id"], "verdict": "conflict", "detail": p["why"], "files": []}
        for p in patches
        if p["cells"][bases[-1]]["verdict"] == "conflict"
    ]
    return Overview(
        tuple(
            {
                "name": b,
                "role": "pinned" if b == bases[0] else "current" if b == bases[-1] else "",
                "date": "2026-01-01",
                "tree": "c" * 40,
                "source": words[0],
                "present": True,
            }
            for b in bases
        ),
        tuple(bases),
        patches,
        tuple(
            {"from": p["id"], "to": p["depends"][0], "kind": "textual", "files": [p["why"]], "because": ""}
            for p in patches
            if p["depends"]
        ),
        {"pairs": 1, "of": 2},
        {"base": bases[-1], "needs": needs, "moves": [], "leaves": [], "carried": []},
        ({"name": bases[0], "patches": count, "tree": "d" * 40},),
    )
