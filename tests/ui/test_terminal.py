"""What a person sees in terminals of any width: nothing that tells things apart is cut off, and colours are never needed."""

from __future__ import annotations

import re

import pytest

from patchq.ui.shapes import LETTERS, MEANINGS, SHAPES
from tests.support.terminal import Film, filmed

IDS = [f"{n:04}-{name}" for n, name in enumerate(["humming-w2-moe", "split-wna16-schemas", "rope-bound"], 1)]
BASES = [f"v0.{minor}.0" for minor in range(27, 34)]
WORDS = [
    ["clean", "offset", *["conflict"] * 4, "partial"],
    ["clean", "missing", "merged", "landed", "reworked", "reverted", "conflict"],
    ["clean"] * 7,
]
REASON = "vllm/model_executor/layers/fused_moe/oracle/int_wna16.py was changed upstream where the patch changes it (hunk 3)"
TITLES = [
    "[Kernel][MoE] Load 2 to 8-bit compressed-tensors experts with Humming",
    "short",
    "\x1b[31mred\x1b[2J" + "w" * 70,
]


def shown(code: str, columns: int, rows: int = 24, **env: str) -> Film:
    film = filmed([], columns, rows, code=f"from patchq.ui.output import *\n{code}", **env)
    assert film.code == 0, film.last
    assert all(len(line) <= columns for line in film.last.splitlines())
    return film


def matrix(columns: int, **env: str) -> list[str]:
    rows = list(zip(IDS, WORDS, strict=True))
    return shown(f"print_matrix('patch', {BASES}, {rows})", columns, **env).last.splitlines()


def test_a_matrix_in_words_where_they_fit() -> None:
    lines = matrix(120)
    assert lines[0].split() == ["patch", *BASES]
    assert [line.split() for line in lines[2:5]] == [[i, *w] for i, w in zip(IDS, WORDS, strict=True)]


@pytest.mark.parametrize(
    ("columns", "marks", "env"),
    [(80, SHAPES, {}), (50, SHAPES, {}), (80, LETTERS, {"PYTHONIOENCODING": "ascii"})],
)
def test_a_matrix_in_shapes_with_their_meaning(
    columns: int, marks: dict[str, str], env: dict[str, str]
) -> None:
    lines = matrix(columns, **env)
    heads = lines[: len(BASES)]
    assert [line.split()[-1] for line in heads] == BASES
    for patch, words in zip(IDS, WORDS, strict=True):
        line = next(line for line in lines if line.startswith(patch))
        assert [line[head.index(base)] for head, base in zip(heads, BASES, strict=True)] == [
            marks[w] for w in words
        ]
    legend = " ".join(lines[len(BASES) + 3 :])
    for word in MEANINGS:
        assert f"{marks[word]} {word}" in legend


def test_each_letter_is_of_one_verdict() -> None:
    assert set(LETTERS) == set(MEANINGS)
    assert len(set(LETTERS.values())) == len(LETTERS)


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_a_table_keeps_its_words_whole(columns: int) -> None:
    rows = [[i, "not proved", "14 passed, 18 failed", t] for i, t in zip(IDS, TITLES, strict=True)]
    film = shown(f"print_table(['patch', 'result', 'before', 'title'], {rows!r})", columns)
    for patch in IDS:
        assert re.search(rf"^{patch} ", film.last, re.MULTILINE)
    assert film.last.count("not proved") == 3
    assert film.last.count("14 passed, 18 failed") == 3
    assert all(word in film.last for word in TITLES[0].split())
    assert film.last.count("w" * 10) >= 3
    assert "…" not in film.last


def test_reasons_fold_and_give_way() -> None:
    several = [(b, "conflict", REASON) for b in BASES[2:6]]
    film = shown(f"print_reasons([('0001-a', {several}), ('0002-b', [])], 'all of it')", 80)
    lines = film.last.splitlines()
    assert lines[:2] == ["0001-a", "  v0.29.0 to v0.32.0 conflict"]
    assert "(hunk 3)" in film.last
    assert "0002-b" not in film.last
    many = [(i, [(b, "conflict", f"{b} {REASON}") for b in BASES]) for i in IDS]
    film = shown(f"print_reasons({many}, 'all of it: patchq forecast ID')", 80, rows=20)
    assert film.last.splitlines()[-1] == "all of it: patchq forecast ID"
    assert "v0.33.0  conflict  v0.33.0 int_wna16.py was changed upstream" in film.last


def test_a_page_is_wrapped_anew() -> None:
    prose = "A line that somebody broke\\nfor another width.\\n\\nAnother paragraph."
    film = shown(
        f"print_page('0001-a: title', [('why', ['{prose}']), ('verdicts', [('v1', 'clean', 'it; is')])])", 80
    )
    assert film.last.splitlines() == [
        *[
            "0001-a: title",
            "",
            "why",
            "  A line that somebody broke for another width.",
            "  Another paragraph.",
        ],
        *["", "verdicts", "  v1 clean", "    it", "    is"],
    ]


BARS = """
from patchq.ui.progress import make_progress
for what, total, unit in {steps}:
    with make_progress().task(what, total=total, unit=unit) as step:
        step(1)
        import threading
        threading.Event().wait(0.25)
"""


@pytest.mark.parametrize("columns", [60, 80])
def test_bars_say_what_is_done_and_what_is_left(columns: int) -> None:
    steps = [
        ("downloading vllm-0.27.1-cp38-abi3-manylinux_2_28_x86_64.whl", 10, "bytes"),
        ("fetching from x", None, "objects"),
        ("making", 30, "seconds"),
        ("late", 0.1, "seconds"),
    ]
    film = shown(f"{BARS.format(steps=steps)}\nprint('end')", columns)
    seen = "\n".join(film.pictures)
    assert re.search(r"^downloading vllm.*1/10 bytes", seen, re.MULTILINE)
    assert re.search(r"^fetching from x .* 1 objects 0:00:00$", seen, re.MULTILINE)
    assert re.search(r"^making .* about (30|29) s left$", seen, re.MULTILINE)
    assert re.search(r"^late .* longer than guessed, 0 s$", seen, re.MULTILINE)
    assert (film.last, film.cursor_hidden) == ("end", False)
