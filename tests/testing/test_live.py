"""A test run as it goes: each patch's line on a terminal, plain lines in a log, and what a broken-off run leaves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.proving import BETTER, GOOD
from tests.support.terminal import filmed
from tests.support.world import edited

if TYPE_CHECKING:
    from tests.support.world import World

LONG = "0002-other-with-a-long-name"
SLOW = b"import time\n\n\ndef test_line():\n    time.sleep(1.2)\n    assert 'patched' in open('pkg/engine.py').read()\n"
ENDLESS = SLOW.replace(b"1.2", b"60")


def three(world: World, slow: bytes = SLOW) -> list[str]:
    """Three patches, one of which needs a card too and one of which is red; the call that proves them here."""
    world.series(
        ("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": GOOD}),
        (LONG, {"pkg/engine.py": edited("pkg/engine.py", 10, b"patched\n"), "tests/test_other.py": slow}),
        ("0003-red", {"pkg/dos.py": b"one\r\n", "tests/test_red.py": b"def test_x():\n    assert False\n"}),
    )
    tests = [{"gate": gate, "run": ["tests/test_other.py"]} for gate in ("cpu", "native")]
    world.describe(LONG, tests=tests)
    world.describe("0003-red", tests=[{"gate": "cpu", "run": ["tests/test_red.py"]}])
    return ["--root", str(world.project), "test", "--prove", "--python", sys.executable, "-j", "1"]


def line(picture: str, name: str) -> str:
    return next((line for line in picture.splitlines() if line.startswith(name)), "")


def test_lines_change_on_a_terminal_and_a_table_is_left(world: World) -> None:
    call = three(world)
    film = filmed(call, 100)
    assert film.code == 1
    live = [p for p in film.pictures if " of 4 done, " in p.splitlines()[0] and len(p.splitlines()) == 5]
    states = [line(p, f"{LONG}  cpu") for p in live]
    assert any(re.search(r"running .*(after|before) \d s", s) for s in states)
    assert any("waiting" in s for s in states)
    assert any(re.search(r"proved .*1 passed; before 1 failed; \d s", s) for s in states)
    assert all("not run" in line(p, f"{LONG}  native") for p in live)
    firsts = [next(n for n, p in enumerate(live) if line(p, name)) for name in ("0001", LONG, "0003")]
    assert firsts == [0, 0, 0]
    for picture in live:
        names = [one.split()[0] for one in picture.splitlines()[1:]]
        assert names == sorted(names)
    assert not film.cursor_hidden
    assert "of 4 done" not in film.last
    for name, state in (("0001-better", "proved"), (LONG, "not run"), ("0003-red", "not proved")):
        assert re.search(rf"^{name} .*{state}", film.last, re.MULTILINE)
    again = filmed([*call, "--fresh"], 100)
    assert any(re.search(r"about \d+ s left", p.splitlines()[0]) for p in again.pictures)


def test_a_narrow_and_low_terminal_shows_what_is_at_work(world: World) -> None:
    film = filmed(three(world), 60, 6)
    assert all(len(one) <= 60 for picture in film.pictures for one in picture.splitlines())
    whole = [p for p in film.pictures if " of 4 done" in p and re.search(r"^and 1 ", p, re.MULTILINE)]
    assert any("running" in line(p, f"{LONG}  cpu") for p in whole)
    assert any("running" in line(p, "0003-red") for p in whole)


def test_interrupted(world: World) -> None:
    film = filmed(three(world, ENDLESS), 100, interrupt=lambda p: "running" in line(p, f"{LONG}  cpu"))
    assert film.code == 130
    assert not film.cursor_hidden
    assert "interrupted" in line(film.last, f"{LONG}  cpu")
    assert "proved" in line(film.last, "0001-better")
    assert film.last.splitlines()[-1] == "patchq: interrupted"
    assert "Traceback" not in "".join(film.pictures)


def test_a_log_gets_a_line_when_a_patch_begins_and_one_when_it_is_decided(world: World) -> None:
    call = three(world)
    done = subprocess.run(
        [sys.executable, "-m", "patchq", *call, "--json"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 1
    assert {r["id"]: r["proved"] for r in json.loads(done.stdout)["results"] if r["gate"] == "cpu"} == {
        "0001-better": True,
        LONG: True,
        "0003-red": False,
    }
    assert "\x1b" not in done.stderr
    told = [re.sub(r"\d+ s\b", "N s", one) for one in done.stderr.splitlines()]
    assert told[:2] == [
        "running tests on 6 trees, 1 at a time",
        f"[1/4] {LONG} native: not run: needs native sm_86 (this machine has no GPU)",
    ]
    assert told[2:] == [
        "0001-better cpu: running",
        "[2/4] 0001-better cpu: proved: 1 passed; before 1 failed; N s",
        f"{LONG} cpu: running",
        f"[3/4] {LONG} cpu: proved: 1 passed; before 1 failed; N s",
        "0003-red cpu: running",
        "[4/4] 0003-red cpu: not proved: 1 failed; before 1 failed; N s",
    ]
    known = subprocess.run(
        [sys.executable, "-m", "patchq", *call], capture_output=True, check=False, text=True
    )
    assert known.stderr == ""


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(world: World) -> None:
    film = filmed(three(world), 100, TERM="dumb")
    assert "[2/4] 0001-better cpu: proved" in film.last
    assert film.code == 1
