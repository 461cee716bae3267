"""The README's pictures, from real runs: screenshots of the report, and a terminal session as SVG."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.support.browser import chromium
from tests.support.terminal import watched

DOCS = Path("docs")
COLUMNS = 96
SHOTS = {1280: 1000, 390: 1000}
"""Widths and heights of the screenshots, in pixels."""
SESSION = (
    ["apply", "--create", "CHECKOUT"],
    ["verify", "CHECKOUT"],
    ["forecast", "0008", "0009", "--base", "v0.28.0", "--base", "v0.33.0"],
)


def run(arguments: list[str], checkout: Path) -> str:
    """What one command shows on a terminal; the checkout is called vllm-patched there."""
    code, shown = watched([a.replace("CHECKOUT", str(checkout)) for a in arguments], COLUMNS)
    if code:
        raise SystemExit(f"patchq {' '.join(arguments)} exited with {code}:\n{shown}")
    return shown.replace("\r\n", "\n").replace(str(checkout), "vllm-patched")


def session(checkout: Path) -> str:
    """The session as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for arguments in SESSION:
        typed = " ".join(a.replace("CHECKOUT", "vllm-patched") for a in arguments)
        console.print(Text(f"$ patchq {typed}", style="bold"))
        console.print(Text.from_ansi(run(arguments, checkout)))
    return console.export_svg(title="patchq", unique_id="patchq")


def main() -> None:
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        top = Path(made)
        (DOCS / "session.svg").write_text(session(top / "vllm-patched"), encoding="utf-8")
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
