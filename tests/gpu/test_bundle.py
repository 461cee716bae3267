"""A bundle made here runs on its own, and its result comes back only as it was written, for the patch as it stands."""

from __future__ import annotations

import base64
import json
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from patchq.gpu.signature import sign
from patchq.testing.isolate import find_isolation
from tests.support.proving import BETTER, GOOD, TEST, bring

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import Result, World

Run = tuple[int, str]
IDLE = "GPU-1, NVIDIA GeForce RTX 3090, 8.6, 580.95, 24576, 5, 0"


def bundle(world: World, out: Path, *args: str) -> Result:
    return world.patchq(
        "bundle", *(args or ("--gate", "cpu", "--prove")), "--no-wheels", "--out", str(out), "--json"
    )


def run(place: Path, *args: str, cards: Path | None = None) -> Run:
    """`bash DIR/run` without network and with little in its environment."""
    path = os.pathsep.join(filter(None, [str(cards) if cards else "", os.environ["PATH"]]))
    prefix = [*find_isolation().prefix] if find_isolation().network else []
    done = subprocess.run(
        [*prefix, "bash", str(place / "run"), *args],
        env={"PATH": path, "PYTHON": sys.executable, "LANG": "C.UTF-8"},
        cwd="/",
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


def imported(world: World, result: Path, *args: str) -> Result:
    return world.patchq("evidence", "import", str(result), "--json", *args)


def evidence(world: World) -> list[dict[str, Any]]:
    file = world.project / "series" / "0001-better" / "evidence.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def driver(tmp_path: Path) -> Callable[..., Path]:
    """A directory with an nvidia-smi that shows these cards and processes."""

    def make(*cards: str, processes: str = "") -> Path:
        folder = tmp_path / "driver"
        folder.mkdir(exist_ok=True)
        script = folder / "nvidia-smi"
        lines = "\\n".join(cards)
        script.write_text(
            f'#!/bin/sh\ncase "$1" in\n--query-gpu=*) printf "{lines}\\n";;\n'
            f'--query-compute-apps=*) printf "{processes}\\n";;\nesac\n'
        )
        script.chmod(0o755)
        return folder

    return make


@pytest.fixture
def done(world: World, tmp_path: Path) -> Path:
    """The result of a bundle of a good patch, proved at the gate cpu."""
    bring(world, GOOD)
    assert bundle(world, tmp_path / "bundle").code == 0
    shutil.copytree(tmp_path / "bundle", tmp_path / "there")
    code, said = run(tmp_path / "there")
    assert code == 0, said
    return tmp_path / "there" / "work" / "report" / "result.json"


def test_what_came_back_is_recorded_once(world: World, done: Path) -> None:
    first, second = imported(world, done), imported(world, done)

    (result,) = first.json["results"]
    assert first.code == 0
    assert (result["status"], result["gate"], result["id"]) == ("proved", "cpu", "0001-better")
    assert first.json["recorded"] == ["series/0001-better/evidence.jsonl"]
    assert second.json["recorded"] == []
    (record,) = evidence(world)
    assert record["tree"] == result["tree"]
    assert record["toolchain"]["bundle"] == first.json["bundle"]
    assert record["before"]["failed"] == record["after"]["passed"] == 1
    (listed,) = world.patchq("evidence", "list", "--json").json["results"]
    assert listed["current"] is True


def test_parts_may_come_one_by_one(world: World, tmp_path: Path) -> None:
    files = {"pkg/model.py": BETTER, "pkg/noise.bin": os.urandom(3_000_000)}
    bring(world, GOOD, production=files)
    written = bundle(world, tmp_path / "bundle", "--gate", "cpu", "--split", "2M").json
    assert len(written["parts"]) > 2
    assert all(
        sum(f.stat().st_size for f in Path(p).rglob("*") if f.is_file()) <= 2_000_000
        for p in written["parts"]
    )
    work = ("--work", str(tmp_path / "work"))
    *first, last = written["parts"]
    for number, part in enumerate(first):
        place = tmp_path / f"delivery-{number}"
        shutil.copytree(part, place)
        code, said = run(place, *work)
        assert code == 3
        assert f"part-{len(first) + 1}" in said
        assert f"part-{number + 1} " not in said.split("missing:")[1]
        shutil.rmtree(place)
    shutil.copytree(last, tmp_path / "delivery")
    code, said = run(tmp_path / "delivery", *work)
    assert code == 0, said
    assert imported(world, tmp_path / "work" / "report" / "result.json").code == 0


def test_an_edited_result_is_refused(world: World, done: Path) -> None:
    def other_tree(document: Any) -> None:
        document["runs"][0].update(dict.fromkeys(("tree", "tree_before", "tree_after"), "0" * 40))

    def other_outcome(document: Any) -> None:
        document["runs"][0]["events"] = document["runs"][1]["events"]

    def other_log(document: Any) -> None:
        document["runs"][0]["log_sha256"] = "0" * 64

    def higher_gate(document: Any) -> None:
        document["runs"][0]["gate"] = "native"

    def unsigned(document: Any) -> None:
        del document["signature"]

    whole = done.read_bytes()
    for edit in (other_tree, other_outcome, other_log, higher_gate, unsigned):
        document = json.loads(whole)
        edit(document)
        done.write_text(json.dumps(document))
        refused = imported(world, done)
        assert refused.code == 1
        assert "signature does not hold" in refused.err
    assert evidence(world) == []


def test_a_result_of_another_tree_is_refused(world: World, done: Path, tmp_path: Path) -> None:
    """Also one that somebody with the bundle has signed anew."""
    plan = json.loads((tmp_path / "bundle" / "bundle.json").read_bytes())
    document = json.loads(done.read_bytes())
    document["runs"][0]["tree_after"] = "0" * 40
    document["signature"] = sign(document, plan["key"])
    done.write_text(json.dumps(document))
    refused = imported(world, done)
    assert refused.code == 1
    assert "is of tree 000000000000" in refused.err
    assert evidence(world) == []


def test_a_result_of_another_body_is_refused(world: World, done: Path, tmp_path: Path) -> None:
    plan = json.loads((tmp_path / "bundle" / "bundle.json").read_bytes())
    document = json.loads(done.read_bytes())
    document["runs"][0]["patch_sha256"] = "0" * 64
    document["signature"] = sign(document, plan["key"])
    done.write_text(json.dumps(document))
    refused = imported(world, done)
    assert refused.code == 1
    assert "another body of 0001-better" in refused.err
    assert evidence(world) == []


def test_a_log_that_unpacks_to_more_than_there_is_room_for(world: World, done: Path, tmp_path: Path) -> None:
    plan = json.loads((tmp_path / "bundle" / "bundle.json").read_bytes())
    document = json.loads(done.read_bytes())
    bomb = base64.b64encode(lzma.compress(bytes((64 << 20) + 1), preset=0)).decode()
    for log, said in (
        (bomb, "holds more than"),
        ("bm90IHh6IGF0IGFsbCwgbm90IHh6", "cannot be unpacked"),
        (bomb[:4000], "is cut off"),
    ):
        document["runs"][0]["log"] = log
        document["signature"] = sign(document, plan["key"])
        done.write_text(json.dumps(document))
        refused = imported(world, done)
        assert (refused.code, said in refused.err) == (1, True), refused.err
    done.write_bytes(b"[" * 100_000)
    assert imported(world, done).code == 2
    assert evidence(world) == []


def test_a_hostile_result_or_plan_is_refused_and_named(world: World, done: Path, tmp_path: Path) -> None:
    """One that whoever holds the bundle has signed anew, and that is not what patchq writes."""
    plan_file = tmp_path / "bundle" / "bundle.json"
    plan, whole = plan_file.read_bytes(), done.read_bytes()
    key = json.loads(plan)["key"]

    def refused(named: str) -> None:
        result = imported(world, done, "--bundle", str(tmp_path / "bundle"))
        assert (result.code, len(result.err.splitlines())) == (2, 2), result.err
        assert f"is not what patchq writes: {named}: " in result.err

    for name, value, named in (
        ("runs", 3, "runs"),
        ("runs", [{}], "runs.0.name"),
        ("machine", {"cards": [{"capability": [8]}]}, "machine.cards.0.name"),
        ("toolchain", {"python": "3", "distributions": ["x"]}, "toolchain.distributions.0"),
        ("refused", [], "refused"),
    ):
        document = {**json.loads(whole), name: value}
        document["signature"] = sign(document, key)
        done.write_text(json.dumps(document))
        refused(named)
    done.write_bytes(whole)
    for name in ("key", "mode", "runs", "extensions"):
        plan_file.write_text(json.dumps({k: v for k, v in json.loads(plan).items() if k != name}))
        refused(name)
    document = json.loads(whole)
    document["runs"] = [r for r in document["runs"] if r["role"] == "before"]
    document["signature"] = sign(document, key)
    done.write_text(json.dumps(document))
    plan_file.write_bytes(plan)
    result = imported(world, done, "--bundle", str(tmp_path / "bundle"))
    assert (result.code, "has no run with 0001-better" in result.err) == (1, True), result.err
    assert evidence(world) == []


def test_a_result_needs_its_bundle(world: World, done: Path, tmp_path: Path) -> None:
    shutil.rmtree(world.cache / "bundles")
    unknown = imported(world, done)
    assert unknown.code == 2
    assert "was not written here" in unknown.err
    assert imported(world, done, "--bundle", str(tmp_path / "bundle")).code == 0


def test_all_skipped_is_no_pass(world: World, tmp_path: Path) -> None:
    bring(world, b"import pytest\n\n\ndef test_first():\n    pytest.skip('no card')\n")
    bundle(world, tmp_path / "bundle", "--gate", "cpu")
    assert run(tmp_path / "bundle")[0] == 1
    back = imported(world, tmp_path / "bundle" / "work" / "report" / "result.json")
    assert back.code == 1
    assert "all skipped" in back.json["results"][0]["against"][0]
    (left,) = back.json["not_recorded"]
    assert (left["id"], left["gate"], left["status"]) == ("0001-better", "cpu", "red")
    assert "all skipped" in left["why"][0]
    assert evidence(world) == []


def test_what_was_left_out_is_listed_as_not_run(
    world: World, tmp_path: Path, driver: Callable[..., Path]
) -> None:
    """Both what a gate refused there, and what nobody asked for; and no list of evidence passes over either."""
    bring(world, GOOD)
    gates = ("cpu", "gpu", "native")
    world.describe("0001-better", tests=[{"gate": gate, "run": [TEST]} for gate in gates])
    asked = [word for gate in gates for word in ("--gate", gate)]
    assert bundle(world, tmp_path / "bundle", *asked).code == 0
    cards = driver("GPU-1, NVIDIA H200, 9.0, 580.95, 143771, 3, 0")
    code, said = run(tmp_path / "bundle", "--gate", "cpu", "--gate", "native", cards=cards)
    assert code == 3, said
    back = imported(world, tmp_path / "bundle" / "work" / "report" / "result.json")
    assert {left["gate"]: (left["status"], left["why"]) for left in back.json["not_recorded"]} == {
        "native": ("not run", ["not run: this machine has NVIDIA H200 (sm_90)"]),
        "gpu": ("not run", ["not run: it was left out when the bundle was run"]),
    }
    assert [r["gate"] for r in evidence(world)] == ["cpu"]
    listed = world.patchq("evidence", "list", "--json").json["not_run"]
    assert [(gap["gate"], gap["why"]) for gap in listed] == [("gpu", "not run"), ("native", "not run")]
    assert "0001-better: gate native for sm_86: not run" in world.patchq("evidence", "list").out


def on_card(world: World, gate: str, out: Path) -> None:
    bring(world, GOOD)
    world.describe("0001-better", tests=[{"gate": gate, "run": [TEST]}])
    assert bundle(world, out, "--gate", gate).code == 0


@pytest.mark.parametrize(
    ("gate", "cards", "processes", "said"),
    [
        ("gpu", (), "", "this machine has no GPU"),
        ("native", ("GPU-1, NVIDIA H200, 9.0, 580.95, 143771, 3, 0",), "", "NVIDIA H200 (sm_90)"),
        ("native", ("GPU-1, NVIDIA L4, 8.9, 580.95, 23034, 3, 0",), "", "NVIDIA L4 (sm_89)"),
        ("native", (IDLE,), "GPU-1, 4711", "not idle: 1 processes compute on it"),
        ("native", (IDLE.replace(", 5, 0", ", 9000, 0"),), "", "not idle: 9.4 GB of its memory"),
        ("native", (IDLE.replace(", 5, 0", ", 5, 90"),), "", "not idle: it is 90 %"),
        ("emulated", (IDLE,), "", "NVIDIA GeForce RTX 3090 (sm_86)"),
    ],
)
def test_a_gate_asks_for_its_card(
    world: World,
    tmp_path: Path,
    driver: Callable[..., Path],
    gate: str,
    cards: tuple[str, ...],
    processes: str,
    said: str,
) -> None:
    on_card(world, gate, tmp_path / "bundle")
    code, out = run(tmp_path / "bundle", cards=driver(*cards, processes=processes))
    assert code == 3
    assert said in out
    assert not (tmp_path / "bundle" / "work" / "report").exists()


def test_a_used_report_directory_is_refused(
    world: World, tmp_path: Path, driver: Callable[..., Path]
) -> None:
    on_card(world, "native", tmp_path / "bundle")
    cards = driver(IDLE)
    assert run(tmp_path / "bundle", cards=cards)[0] == 0
    code, said = run(tmp_path / "bundle", cards=cards)
    assert code == 2
    assert "was used already" in said
    back = imported(world, tmp_path / "bundle" / "work" / "report" / "result.json")
    (record,) = evidence(world)
    assert back.code == 0
    assert (record["gate"], record["device"], record["capability"]) == (
        "native",
        "NVIDIA GeForce RTX 3090",
        "sm_86",
    )
    assert record["memory"] == {"before": 5 << 20, "after": 5 << 20}


def test_emulation_without_a_kernel_is_no_pass(
    world: World, tmp_path: Path, driver: Callable[..., Path]
) -> None:
    on_card(world, "emulated", tmp_path / "bundle")
    cards = driver("GPU-1, NVIDIA H200, 9.0, 580.95, 143771, 3, 0")
    assert run(tmp_path / "bundle", cards=cards)[0] == 0
    back = imported(world, tmp_path / "bundle" / "work" / "report" / "result.json")
    assert back.code == 1
    assert "zero kernels compiled" in back.json["results"][0]["against"][0]
    assert evidence(world) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--gate", "warp"), "there is no gate 'warp'"),
        (("--gate", "cpu", "--split", "60 apples"), "is not a size"),
        (("--gate", "cpu", "--split", "1M"), "are too small"),
        (("--gate", "cpu", "--python-version", "three"), "is not a version of Python"),
        (("--gate", "native"), "has tests at the gate native"),
    ],
)
def test_bad_input_writes_nothing(world: World, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    bring(world, GOOD)
    refused = bundle(world, tmp_path / "bundle", *args)
    assert refused.code == 2
    assert said in refused.err
    assert not (tmp_path / "bundle").exists()
