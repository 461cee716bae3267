"""The README's pictures, from real runs: screenshots of the report, and what terminals showed as SVG."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tests.support.browser import chromium
from tests.support.terminal import filmed, watched

if TYPE_CHECKING:
    import pyte

ROOT = Path(__file__).parent.parent.absolute()
DOCS = ROOT / "docs"
COLUMNS, ROWS = 96, 60
SHOTS = {1280: 1000, 390: 844}
"""Widths and heights of the screenshots, in pixels."""
SESSION = (
    ["apply", "--create", "vllm-patched"],
    ["verify", "vllm-patched"],
    ["forecast", "0008", "0009", "--base", "v0.28.0", "--base", "v0.33.0"],
)
PROOF = ["test", "--prove", "--fresh", "0006", "0008", "0009"]


def picture(screen: pyte.Screen) -> Text:
    """A terminal's screen with its colours."""
    lines = []
    for row in range(screen.lines):
        line = Text()
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            colour = {"default": "", "brown": "yellow"}.get(cell.fg, cell.fg)
            line.append(cell.data, f"{'bold ' if cell.bold else ''}{colour}".strip())
        line.rstrip()
        lines.append(line)
    while lines and not lines[-1].plain:
        lines.pop()
    return Text("\n").join(lines)


def run(arguments: list[str]) -> Text:
    """What one command leaves on a terminal."""
    screens: list[pyte.Screen] = []
    film = filmed(arguments, COLUMNS, ROWS, look=screens.append)
    if film.code:
        raise SystemExit(f"patchq {' '.join(arguments)} exited with {film.code}:\n{film.last}")
    return picture(screens[-1])


def session() -> str:
    """The session as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for arguments in SESSION:
        console.print(Text(f"$ patchq {' '.join(arguments)}", style="bold"))
        console.print(run(arguments))
    return console.export_svg(title="patchq", unique_id="patchq")


def proof() -> str:
    """A test run as SVG: its lines when some patches were proved and others were being run, and what it left."""
    halves: list[Text] = []

    def look(screen: pyte.Screen) -> None:
        shown = "\n".join(screen.display)
        if " proved " in shown and shown.count(" running ") > 1 and " left, " in shown:
            halves[:] = [picture(screen)]

    screens: list[pyte.Screen] = []
    film = filmed(PROOF, COLUMNS, ROWS, look=lambda screen: (look(screen), screens.append(screen))[0])
    if film.code:
        raise SystemExit(f"patchq {' '.join(PROOF)} exited with {film.code}:\n{film.last}")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ patchq {' '.join(PROOF)}", style="bold"))
    for half in halves:
        console.print(half)
        console.print(Text("\n(and in the end)\n", style="dim"))
    console.print(picture(screens[-1]))
    return console.export_svg(title="patchq test", unique_id="patchq-test")


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        top = Path(made)
        os.chdir(top)
        os.environ["PATCHQ_ROOT"] = str(ROOT)
        (DOCS / "session.svg").write_text(session(), encoding="utf-8")
        if "--proof" in sys.argv[1:]:
            (DOCS / "test.svg").write_text(proof(), encoding="utf-8")
        page = top / "report.html"
        code, shown = watched(["report", "--html", str(page)])
        if code:
            raise SystemExit(shown)
        with chromium() as browser:
            for width, height in SHOTS.items():
                tab = browser.new_context(viewport={"width": width, "height": height}).new_page()
                tab.goto(page.as_uri())
                tab.screenshot(path=str(DOCS / f"report-{width}.png"))
    for file in sorted(DOCS.iterdir()):
        print(f"{file}: {file.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
