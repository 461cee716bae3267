"""A few seconds of what ci/fuzz does for as long as it is told; and what it has found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from patchq.errors import InputError
from patchq.git.diff import parse_diff
from patchq.series.evidence import read_evidence
from tests.support.fuzzing import TARGETS

ROOT = Path(__file__).parents[1]


def test_every_parser_bears_some_broken_inputs(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.support.fuzzing import fuzz\n"
        f"count, found = fuzz(7, 40, [], Path({str(tmp_path)!r}), rounds=25)\nprint(count, found)\nsys.exit(bool(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    assert int(done.stdout.split()[0]) >= len(TARGETS)


@pytest.mark.parametrize("data", [b"\xff", b"[" * 100_000, b'{"id": ' * 100_000, b"9" * 5000, b"[]", b"{}"])
def test_evidence_that_is_none(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "evidence.jsonl"
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"evidence\.jsonl"):
        read_evidence(file)
    assert read_evidence(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("mode", ["108644", "999999", "040000"])
def test_a_mode_in_an_index_line_that_is_none(mode: str) -> None:
    diff = f"diff --git a/f b/f\nindex 1234567..89abcde {mode}\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"
    with pytest.raises(InputError, match=f"^x.diff:2: {mode} is not a file mode"):
        parse_diff(diff.encode(), "x.diff")


@pytest.mark.parametrize("hunk", ["@@ -1 +{} @@", "@@ -{} +1 @@", "@@ -1,{} +1 @@", "@@ -1 +1,{} @@"])
def test_a_number_longer_than_any_line_count(hunk: str) -> None:
    diff = f"diff --git a/f b/f\n--- a/f\n+++ b/f\n{hunk.format('9' * 5000)}\n-x\n+y\n"
    with pytest.raises(InputError, match="is not a hunk header"):
        parse_diff(diff.encode(), "x.diff")
    binary = f"diff --git a/b b/b\nnew file mode 100644\nindex {'0' * 40}..{'1' * 40}\nGIT binary patch\nliteral {'9' * 5000}\n"
    with pytest.raises(InputError):
        parse_diff(binary.encode(), "x.diff")
