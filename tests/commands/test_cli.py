"""The command line as a whole: help, exit codes, one JSON document, tables for people, lines for pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.terminal import ESCAPE, watched
from tests.support.world import World, snapshot

if TYPE_CHECKING:
    from pathlib import Path

IDS = ["0001-first", "0002-second", "0003-third"]
COMMANDS = [
    ["status"],
    ["apply"],
    ["unapply"],
    ["verify"],
    ["refresh"],
    ["deps"],
    ["upstream"],
    ["upstream", "list"],
    ["upstream", "fetch"],
    ["upstream", "add"],
    ["export"],
    ["export", "pr"],
    ["export", "overlay"],
    ["export", "quilt"],
    ["export", "mbox"],
]


def patchq(*args: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own."""
    env = {**os.environ, **more.pop("env", {})}
    command = [sys.executable, "-c", "from patchq.cli import main; main()", *args]
    return subprocess.run(command, env=env, check=False, **({"capture_output": True} | more))


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_fits_one_screen(world: World, flag: str) -> None:
    result = world.patchq(flag)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    listed = result.out.partition("Commands:\n")[2].splitlines()
    assert {c[0] for c in COMMANDS} <= {
        line.split()[0] for line in listed if line.startswith("  ") and line[2] != " "
    }
    assert not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(world: World, command: list[str]) -> None:
    result = world.patchq(*command, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: patchq {' '.join(command)} ")
    if command not in (["upstream"], ["export"]):
        assert "--json" in result.out


def test_what_is_heavy_is_not_imported_for_help() -> None:
    code = "import sys; from patchq import cli; cli.run(['--help']); print(*[m for m in ('rich', 'pydantic', 'git', 'yaml', 'requests', 'pypi_simple') if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr.strip() == b""


def test_version(world: World) -> None:
    result = world.patchq("--version")
    assert (result.code, result.out.split()[0]) == (0, "patchq")


def calls(world: World) -> dict[str, tuple[int, list[str]]]:
    """One call of each command for each exit code that it can give here."""
    clone, other = str(world.clone()), str(world.clone("other"))
    world.commit(world.top / "other", "mine", {"pkg/engine.py": b"mine\n"})
    new = str(world.top / "made")
    return {
        "list": (0, ["upstream", "list"]),
        "fetch": (0, ["upstream", "fetch"]),
        "fetch nothing": (2, ["upstream", "fetch", "v9"]),
        "add": (0, ["upstream", "add", "v2", "--directory", str(world.upstream)]),
        "add again": (2, ["upstream", "add", "v1", "--directory", str(world.upstream)]),
        "add from nowhere": (3, ["upstream", "add", "v3", "--git", "file:///nowhere"]),
        "status": (0, ["status"]),
        "status of a checkout": (0, ["status", clone]),
        "status of another": (1, ["status", other]),
        "apply dry": (0, ["apply", clone, "--dry-run"]),
        "verify before": (1, ["verify", clone]),
        "apply": (0, ["apply", clone]),
        "apply again": (0, ["apply", clone]),
        "verify": (0, ["verify", clone]),
        "unapply": (0, ["unapply", clone]),
        "apply to another": (1, ["apply", other]),
        "unapply from another": (1, ["unapply", other]),
        "verify another": (1, ["verify", other]),
        "apply to nothing": (2, ["apply", str(world.top / "nowhere")]),
        "create": (0, ["apply", "--create", new]),
        "create again": (0, ["apply", "--create", new]),
        "refresh": (0, ["refresh", new]),
        "refresh from another": (1, ["refresh", other]),
        "deps": (0, ["deps"]),
        "no patch": (2, ["apply", clone, "--upto", "nothing"]),
        "empty name": (2, ["apply", clone, "--upto", ""]),
        "empty base": (2, ["apply", clone, "--base", ""]),
        "both": (2, ["apply", clone, "--upto", "1", "--only", "2"]),
        "no argument": (2, ["apply"]),
        "no option": (2, ["status", "--nope"]),
        "no command": (2, ["nonsense"]),
        "no subcommand": (2, ["upstream", "nonsense"]),
    }


def test_json_is_one_document_and_nothing_else(stacked: World) -> None:
    for name, (code, args) in calls(stacked).items():
        result = stacked.patchq(*args, "--json")
        assert result.code == code, (name, result.err)
        document = json.loads(result.out)
        assert isinstance(document, dict), name
        if code in {2, 3} or (code == 1 and args[0] != "verify"):
            error = document["error"]
            assert set(error) == {"message", "remedy", "files"}, name
            assert all((error["message"], error["remedy"])), name
            assert error["message"] in result.err, name
        else:
            assert "error" not in document, name
        assert "Traceback" not in result.err, name


def test_without_json_an_error_is_two_lines_on_stderr(stacked: World) -> None:
    for name, (code, args) in calls(stacked).items():
        result = stacked.patchq(*args)
        assert result.code == code, (name, result.err)
        assert "Traceback" not in result.err, name
        if code == 0:
            assert result.out, name
        elif args[0] != "verify":
            assert result.out == "", name
            said = [line for line in result.err.splitlines() if not line.startswith("fetching")]
            usage = said[0].startswith("Usage: ")
            assert usage or (
                len(said) == 2 and said[0].startswith("patchq: ") and said[1].startswith("  ")
            ), name


PROMISED = {
    "list": ["bases"],
    "status of a checkout": ["base", "applied", "patches"],
    "apply": ["base", "match", "tree", "head", "branch", "patches"],
    "unapply": ["base", "tree"],
    "verify": ["ok", "tree", "files"],
    "verify another": ["ok", "tree", "files"],
    "refresh": ["patches"],
    "deps": ["edges", "commutes"],
}


def test_the_keys_that_are_promised(stacked: World) -> None:
    found = {}
    for name, (_, args) in calls(stacked).items():
        found[name] = stacked.patchq(*args, "--json").json
    for name, keys in PROMISED.items():
        assert set(keys) <= set(found[name]), name
    assert set(found["list"]["bases"][0]) >= {"name", "tree", "source", "present"}
    assert [(p["id"], p["verdict"]) for p in found["status of a checkout"]["patches"]] == [
        (i, "clean") for i in IDS
    ]
    assert [(p["id"], p["verdict"], p["offsets"]) for p in found["apply"]["patches"]] == [
        (i, "clean", []) for i in IDS
    ]
    assert found["verify another"]["ok"] is False
    assert {"path": "pkg/engine.py", "problem": "differs"} in found["verify another"]["files"]


def test_pipes_get_plain_lines(stacked: World) -> None:
    assert stacked.patchq("status").out.splitlines()[:3] == [f"{i}\tclean\t[Test] {i[5:]}" for i in IDS]
    done = patchq("--root", str(stacked.project), "upstream", "list", env={"FORCE_COLOR": "1"})
    assert b"\x1b" not in done.stdout
    assert done.stdout.decode().split("\t")[:2] == ["v1", "pinned"] or done.stdout.startswith(b"v1\t")


def test_a_person_gets_a_table(stacked: World) -> None:
    code, shown = watched(["--root", str(stacked.project), "status"])
    plain = ESCAPE.sub("", shown)
    assert (code, "\t" in plain) == (0, False)
    assert shown != plain
    assert "patch" in plain.splitlines()[0]
    for patch in IDS:
        assert any(patch in line and "clean" in line for line in plain.splitlines())


def test_no_color(stacked: World) -> None:
    code, shown = watched(["--root", str(stacked.project), "status"], NO_COLOR="1")
    colours = [e for e in ESCAPE.findall(shown) if e.startswith(("\x1b[3", "\x1b[9"))]
    assert (code, colours) == (0, [])
    assert "0001-first" in shown


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_narrow_and_wide_terminals(stacked: World, columns: int) -> None:
    code, shown = watched(["--root", str(stacked.project), "status"], columns)
    assert code == 0
    table = ESCAPE.sub("", shown).replace("\r", "").splitlines()[:-1]
    assert max(map(len, table)) <= columns
    assert "Traceback" not in shown


def test_json_on_a_terminal_is_json_alone(stacked: World) -> None:
    code, shown = watched(["--root", str(stacked.project), "status", "--json"])
    assert (code, json.loads(shown)["base"]) == (0, "v1")


def test_names_that_stdout_cannot_carry(stacked: World) -> None:
    clone = stacked.clone()
    odd = os.fsdecode(b"caf\xe9\n.txt")
    stacked.commit(clone, "odd", {odd: b"x\n", "\u6f22": b"x\n"})
    for name in (odd, "\u6f22"):
        (clone / name).write_bytes(b"dirty\n")
    for env in ({}, {"PYTHONIOENCODING": "ascii"}):
        done = patchq("--root", str(stacked.project), "status", str(clone), "--json", env=env)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["dirty"] == [odd, "\u6f22"]
        done = patchq("--root", str(stacked.project), "status", str(clone), env=env)
        assert (done.returncode, b"not committed" in done.stdout) == (0, True)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away(stacked: World, unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = patchq(
        "--root",
        str(stacked.project),
        "status",
        capture_output=False,
        stdout=write,
        stderr=subprocess.PIPE,
        env={"PYTHONUNBUFFERED": unbuffered},
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("args", [["status"], ["status", "--json"], ["nonsense", "--json"]])
def test_a_full_disk_behind_stdout(stacked: World, args: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = patchq(
            "--root", str(stacked.project), *args, capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == (2 if "nonsense" in args else 3)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_a_closed_stdout(stacked: World) -> None:
    command = f"{sys.executable} -c 'from patchq.cli import main; main()' --root {stacked.project} status >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_interrupted(stacked: World) -> None:
    """Ctrl-C while it works: 130, one line, and the checkout as it was."""
    clone = stacked.clone()
    before = snapshot(clone)
    hook = "import os, signal, sys\nfrom patchq.engine import apply\nold = apply.diff_trees\ndef diff_trees(*a):\n os.kill(os.getpid(), signal.SIGINT)\n return old(*a)\napply.diff_trees = diff_trees"
    done = stacked.child("apply", str(clone), before=hook)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"patchq: interrupted")
    assert snapshot(clone) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_bug_is_one_message_and_a_log(stacked: World) -> None:
    hook = "from patchq.series import series\ndef broken(*a): raise RuntimeError('oops')\nseries.load_series = broken"
    done = stacked.child("status", "--json", before=hook)
    assert done.returncode == 3
    assert "RuntimeError: oops" in json.loads(done.stdout)["error"]["message"]
    assert b"Traceback" not in done.stderr
    assert "RuntimeError: oops" in (stacked.cache / "crash.log").read_text()


def test_no_git_on_the_path(stacked: World) -> None:
    done = stacked.child("status", "--json", PATH="/nowhere")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["message"] == "git is not on PATH."


def test_a_git_too_old(stacked: World) -> None:
    old = stacked.top / "bin"
    old.mkdir()
    (old / "git").write_text("#!/bin/sh\necho git version 2.30.1\n")
    (old / "git").chmod(0o755)
    done = stacked.child("status", "--json", PATH=f"{old}:{os.environ['PATH']}")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["message"] == "git 2.30.1 is too old."


def test_the_root_is_found_upward(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stacked.project / "series/0001-first")
    assert json.loads(patchq("status", "--json").stdout)["base"] == "v1"
    monkeypatch.chdir(stacked.top)
    done = patchq("status", "--json")
    assert (done.returncode, "upstream.lock" in json.loads(done.stdout)["error"]["message"]) == (2, True)
    assert (
        json.loads(patchq("status", "--json", env={"PATCHQ_ROOT": str(stacked.project)}).stdout)["base"]
        == "v1"
    )
    done = patchq("--root", str(stacked.project), "status", "--json", env={"PATCHQ_ROOT": "/nowhere"})
    assert json.loads(done.stdout)["base"] == "v1"


def completed(line: str, shell: str = "bash", **env: str) -> list[str]:
    """What tab offers at the end of a line, by the shell's own protocol."""
    words = (
        {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        if shell == "bash"
        else {"_TYPER_COMPLETE_ARGS": line}
    )
    done = patchq(env={"_PATCHQ_COMPLETE": f"complete_{shell}", **words, **env})
    assert done.stderr == b""
    return done.stdout.decode().split()


def test_tab_completes_commands_and_options(tmp_path: Path) -> None:
    assert "apply" in completed("patchq ")
    assert completed("patchq una") == ["unapply"]
    assert set(completed("patchq upstream ")) == {"list", "fetch", "add"}
    assert completed("patchq apply --cre") == ["--create"]
    assert tmp_path.is_dir()


def test_tab_completes_patches_and_bases(stacked: World) -> None:
    root = str(stacked.project)
    assert completed("patchq apply --only ", PATCHQ_ROOT=root) == IDS
    assert completed("patchq apply --upto 0002", PATCHQ_ROOT=root) == ["0002-second"]
    assert completed("patchq status --base ", PATCHQ_ROOT=root) == ["v1"]
    assert completed("patchq upstream fetch v", PATCHQ_ROOT=root) == ["v1"]
    assert completed(f"patchq --root {root} apply --only 0003") == ["0003-third"]
    (stacked.project / "upstream.lock").write_text("not a lock")
    assert completed("patchq apply --only ", PATCHQ_ROOT=root) == []


def test_tab_in_zsh_shows_titles(stacked: World) -> None:
    offered = completed("patchq apply --only 0001", "zsh", PATCHQ_ROOT=str(stacked.project))
    assert "0001-first" in " ".join(offered)
