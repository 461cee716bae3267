"""A headless Chromium from the system's packages, and axe-core from npm; nothing they open leaves this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = "axe-core@4.11.0"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser, closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


def axe_script(cache: Path) -> str:
    """axe-core's script, fetched once."""
    directory = cache / "tools" / AXE
    script = directory / "package" / "axe.min.js"
    directory.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{directory}.lock"):
        if not script.is_file():
            env = {
                **os.environ,
                "npm_config_cache": str(directory / "npm"),
                "npm_config_update_notifier": "false",
            }
            packed = subprocess.run(
                ["npm", "pack", AXE, "--silent"],
                cwd=directory,
                env=env,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split()[-1]
            with tarfile.open(directory / packed) as archive:
                archive.extract("package/axe.min.js", directory, filter="data")
    return script.read_text("utf-8")


class Opened:
    """A page that was opened from disk, and all that it asked for or complained of."""

    def __init__(self, browser: Browser, file: Path, width: int, scheme: Any = "light") -> None:
        self.page: Page = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        ).new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in {"error", "warning"} else None
        )
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.goto(file.as_uri())
        self.file = file

    def check(self) -> None:
        """Nothing but the file itself was asked for, and nothing went wrong."""
        assert [u.partition("#")[0] for u in self.requests if not u.startswith("data:")] == [
            self.file.as_uri()
        ]
        assert self.complaints == []
