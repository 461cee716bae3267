"""What was run is not run again, and one changed line runs only what depends on it."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from patchq.testing.evidence import failures
from patchq.testing.outcome import Outcome
from tests.support.proving import BETTER, GOOD, prove
from tests.support.world import edited

if TYPE_CHECKING:
    from tests.support.world import World

OTHER = b"from pathlib import Path\n\n\ndef test_line():\n    assert 'patched' in Path('pkg/engine.py').read_text()\n"
THIRD = b"from pkg import model\n\n\ndef test_sum():\n    assert model.first() + model.third() == 14\n"


def three(world: World, first: bytes = BETTER) -> None:
    """Two patches that know nothing of each other, and one that depends on the first."""
    third = first.replace(b"return 3", b"return 4")
    world.series(
        ("0001-better", {"pkg/model.py": first, "tests/test_it.py": GOOD}),
        (
            "0002-other",
            {"pkg/engine.py": edited("pkg/engine.py", 10, b"patched\n"), "tests/test_other.py": OTHER},
        ),
        ("0003-third", {"pkg/model.py": third, "tests/test_third.py": THIRD}),
    )
    world.describe("0002-other", tests=[{"gate": "cpu", "run": ["tests/test_other.py"]}])
    world.describe(
        "0003-third", depends=["0001-better"], tests=[{"gate": "cpu", "run": ["tests/test_third.py"]}]
    )


def cached(results: list[dict[str, Any]]) -> dict[str, bool]:
    return {r["id"]: r["cached"] for r in results}


def test_a_changed_line_runs_only_what_depends_on_it(world: World) -> None:
    three(world)
    assert prove(world, "-j", "2").code == 0
    body = world.project / "series" / "0001-better" / "v1.patch"
    before = body.read_bytes()
    shutil.rmtree(world.top / "author")
    three(world, first=BETTER.replace(b"def second", b"def  second"))
    assert body.read_bytes() != before

    result = prove(world)

    assert result.code == 0, result.out
    assert cached(result.json["results"]) == {"0001-better": False, "0002-other": True, "0003-third": False}


def test_known_results_take_no_time(world: World) -> None:
    three(world)
    assert prove(world).code == 0
    began = time.monotonic()
    result = prove(world)
    assert time.monotonic() - began < 5
    assert set(cached(result.json["results"]).values()) == {True}
    assert "3 of 3 from the ledger" in world.patchq("test", "--prove", "--python", sys.executable).out


def test_a_damaged_entry_is_run_again(world: World) -> None:
    three(world)
    assert prove(world, "0002").code == 0
    for entry in (world.cache / "ledger").iterdir():
        entry.write_bytes(entry.read_bytes()[:-20])
    result = prove(world, "0002")
    assert result.code == 0
    assert cached(result.json["results"]) == {"0002-other": False}


def test_a_red_result_is_remembered_and_a_hang_is_not(world: World) -> None:
    world.series(("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": GOOD.replace(b"10", b"11")}))
    assert cached(prove(world).json["results"]) == {"0001-better": False}
    again = prove(world)
    assert again.code == 1
    assert cached(again.json["results"]) == {"0001-better": True}
    world.describe("0001-better", time_limit=1)
    hang = b"def test_wait():\n    import time\n\n    time.sleep(99)\n"
    clone = world.top / "author"
    (clone / "tests" / "test_it.py").write_bytes(hang)
    world.git("commit", "-q", "-a", "--amend", "--no-edit", cwd=clone)
    world.ok("refresh", str(clone))
    for _ in range(2):
        (found,) = prove(world).json["results"]
        assert found["cached"] is False
        assert any("hang" in a for a in found["against"])


def test_evidence(world: World) -> None:
    three(world)
    result = prove(world, "0001", "0002", "--record")
    assert result.code == 0
    assert result.json["recorded"] == [
        "series/0001-better/evidence.jsonl",
        "series/0002-other/evidence.jsonl",
    ]
    file = world.project / "series" / "0001-better" / "evidence.jsonl"
    (record,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert record["command"] == "patchq test --base v1 --alone --prove 0001-better"
    assert record["after"] == {"passed": 1, "failed": 0, "skipped": 0, "errors": 0}
    assert record["before"] == {"passed": 0, "failed": 1, "skipped": 0, "errors": 0}
    assert record["before_output"] == ["tests/test_it.py::test_first: assert 1 == 10"]
    assert (world.cache / "logs" / f"{record['log_sha256']}.log").is_file()
    assert prove(world, "0001", "--record").json["recorded"] == []

    listed = world.ok("evidence", "list")["results"]
    assert world.ok("evidence")["results"] == listed

    assert [(r["id"], r["base"], r["gate"], r["current"]) for r in listed] == [
        ("0001-better", "v1", "cpu", True),
        ("0002-other", "v1", "cpu", True),
    ]
    assert listed[0]["tree"] == result.json["results"][0]["tree"]


def test_evidence_that_is_no_evidence(world: World) -> None:
    three(world)
    (world.project / "series" / "0001-better" / "evidence.jsonl").write_text('{"id": 1}\nnot json\n')
    found = world.patchq("evidence", "list")
    assert found.code == 2
    assert "series/0001-better/evidence.jsonl:1: this is not a record of evidence" in found.err


def test_evidence_of_an_older_body(world: World) -> None:
    three(world)
    prove(world, "0001", "--record")
    file = world.project / "series" / "0001-better" / "evidence.jsonl"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "patch_sha256": "0" * 64}) + "\n")
    (listed,) = world.ok("evidence", "list")["results"]
    assert listed["current"] is False


def test_quoted_failures_are_one_of_each_reason_first() -> None:
    reasons = {"a": "one", "b": "one", "c": "two", "d": "three", "e": "four", "f": "five"}
    outcome = Outcome(dict.fromkeys(reasons, "failed"), reasons)
    assert failures(outcome) == ["a: one", "c: two", "d: three", "e: four"]
    few = {"a": "one", "b": "one", "c": "two"}
    assert failures(Outcome(dict.fromkeys(few, "failed"), few)) == ["a: one", "c: two", "b: one"]
    assert failures(Outcome(problem="crash", detail="in a: SIGSEGV")) == ["crash in a: SIGSEGV"]
