"""The door to git: nothing of the user's reaches through it, and a failure carries what git said."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from patchq.errors import EnvironmentLacksError
from patchq.git.run import GitError, clean_environment, git_command, git_version, run, strip_environment
from tests.support.oracle import Oracle

if TYPE_CHECKING:
    from pathlib import Path


def test_bytes_in_and_out() -> None:
    assert run(["stripspace"], stdin=b"\xff  \n\n\n\xa0") == b"\xff\n\n\xa0\n"
    assert run(["hash-object", "--stdin"]) == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"


def test_a_failure_carries_command_and_streams(tmp_path: Path) -> None:
    with pytest.raises(GitError) as caught:
        run(["rev-parse", "--verify", "no-such"], cwd=tmp_path)
    assert caught.value.command == ("rev-parse", "--verify", "no-such")
    assert caught.value.returncode == 128
    assert caught.value.stderr in str(caught.value)
    assert run(["rev-parse", "--verify", "no-such"], cwd=tmp_path, check=False) == b""


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no such directory"):
        run(["status"], cwd=tmp_path / "nowhere")


def test_no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentLacksError, match="git is not on PATH"):
        run(["--version"])


def test_variables_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_WORK_TREE",
        "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF",
        "GIT_OBJECT_DIRECTORY",
        "GIT_TRACE",
    ):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -v")
    env = clean_environment({"GIT_INDEX_FILE": "mine"})
    assert {
        n: v
        for n, v in env.items()
        if n in {"GIT_DIR", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_TRACE"}
    } == {
        "GIT_INDEX_FILE": "mine",
        "GIT_SSH_COMMAND": "ssh -v",
    }
    assert (env["LC_ALL"], env["GIT_CONFIG_GLOBAL"], env["GIT_TERMINAL_PROMPT"]) == ("C", os.devnull, "0")
    strip_environment()
    assert [n for n in os.environ if n.startswith("GIT_")] == ["GIT_SSH_COMMAND"]


def test_settings_of_the_users(tmp_path: Path) -> None:
    git = Oracle(tmp_path / "repo").start()
    (tmp_path / "home/.gitconfig").write_text(
        "[alias]\n\tstatus = !false\n[user]\n\tname = hostile\n[diff]\n\tnoprefix = true\n"
    )
    git.git("config", "diff.noprefix", "true")
    git.git("config", "diff.renames", "copies")
    for name, value in (
        ("user.name", ""),
        ("diff.noprefix", "false"),
        ("diff.renames", "false"),
        ("commit.gpgsign", "false"),
        ("core.hookspath", os.devnull),
    ):
        assert run(["config", "--get", name], cwd=git.path, check=False).decode().strip() == value


def test_what_is_asked_for_wins() -> None:
    command = git_command(["status"], ["core.quotePath=true"])
    assert command[0] == "git"
    assert command[-1] == "status"
    assert command.index("core.quotePath=true") > command.index("core.quotePath=false")


def test_the_version_is_numbers() -> None:
    assert git_version() >= (2, 38)
    assert all(isinstance(part, int) for part in git_version())
