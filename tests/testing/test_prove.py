"""Each way in which a patch's tests can be worth nothing is caught, and called by its name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from patchq.testing.isolate import find_isolation
from tests.support.proving import BETTER, GOOD, MODEL, TEST, bring, prove, refused

if TYPE_CHECKING:
    from tests.support.world import World

COUNTS = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}


def test_a_good_patch_is_proved_and_then_known(world: World) -> None:
    bring(world, GOOD)

    first = prove(world)
    again = prove(world)

    assert first.code == 0, first.out
    (result,) = first.json["results"]
    assert result["proved"] is True
    assert result["status"] == "proved"
    assert result["before"] == {**COUNTS, "failed": 1}
    assert result["after"] == {**COUNTS, "passed": 1}
    assert (result["mode"], result["gate"], result["target"], result["base"]) == (
        "alone",
        "cpu",
        "sm_86",
        "v1",
    )
    assert result["cached"] is False
    (known,) = again.json["results"]
    assert known["cached"] is True
    assert {**known, "cached": False} == result
    (fresh,) = prove(world, "--fresh").json["results"]
    assert fresh["cached"] is False


def test_useless(world: World) -> None:
    bring(world, b"from pkg import model\n\n\ndef test_second():\n    assert model.second() == 2\n")
    found = refused(world)
    assert f"before: useless: {TEST}: no test of it fails without the patch (1 run)" in found["against"]


def test_a_useless_file_beside_a_good_one(world: World) -> None:
    files = {"pkg/model.py": BETTER, TEST: GOOD, "tests/test_other.py": b"def test_nothing():\n    pass\n"}
    world.series(("0001-better", files))
    world.describe("0001-better", tests=[{"gate": "cpu", "run": [TEST, "tests/test_other.py"]}])
    found = refused(world)
    assert [a for a in found["against"] if "useless" in a] == [
        "before: useless: tests/test_other.py: no test of it fails without the patch (1 run)",
    ]


def test_skipped(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_card():\n    import pytest\n\n    pytest.skip('no card')\n")
    found = refused(world)
    assert found["after"] == {**COUNTS, "passed": 1, "skipped": 1}
    assert any(
        a.startswith(f"after: skipped: {TEST}::test_card") and "no card" in a for a in found["against"]
    )


def test_all_skipped(world: World) -> None:
    bring(world, b"import pytest\n\npytestmark = pytest.mark.skip('later')\n\n\ndef test_it():\n    pass\n")
    assert any(a.startswith("after: all skipped") for a in refused(world)["against"])


def test_a_module_that_skips_itself(world: World) -> None:
    bring(
        world,
        b"import pytest\n\npytest.importorskip('no_such_module_at_all')\n\n\ndef test_it():\n    pass\n",
    )
    assert any(a.startswith("after: all skipped") for a in refused(world)["against"])


def test_expected_failures_prove_nothing(world: World) -> None:
    bring(world, b"import pytest\n\n\n@pytest.mark.xfail\ndef test_it():\n    assert False\n")
    found = refused(world)
    assert found["after"] == {**COUNTS, "skipped": 1}


def test_empty(world: World) -> None:
    bring(world, b"# nothing yet\n")
    assert "after: collected nothing (no test was selected)" in refused(world)["against"]


def test_missing(world: World) -> None:
    bring(world, GOOD, tests=[{"gate": "cpu", "run": ["tests/test_gone.py"]}])
    assert refused(world)["against"] == ["missing test: tests/test_gone.py is not in the tree with the patch"]


def test_none(world: World) -> None:
    bring(world, GOOD, tests=[])
    assert refused(world)["against"] == ["missing test: its patch.yaml names none"]


def test_a_gate_without_tests(world: World) -> None:
    bring(world, GOOD)
    result = prove(world, "--gate", "native")
    assert result.code == 2
    assert "has tests at the gate native" in result.err


def test_missing_node_id(world: World) -> None:
    bring(world, GOOD, tests=[{"gate": "cpu", "run": [f"{TEST}::test_gone"]}])
    against = refused(world)["against"]
    assert any(a.startswith("after: collected nothing") and "test_gone" in a for a in against), against


def test_red(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_bad():\n    assert model.third() == 4\n")
    found = refused(world)
    assert found["after"] == {**COUNTS, "passed": 1, "failed": 1}
    assert f"after: failed: {TEST}::test_bad: assert 3 == 4" in found["against"]


def test_hang(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_wait():\n    import time\n\n    time.sleep(600)\n", time_limit=3)
    found = refused(world)
    assert f"after: hang (in {TEST}::test_wait: not done after 3 s)" in found["against"]


def test_crash(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_end():\n    import os\n\n    os.kill(os.getpid(), 11)\n")
    assert f"after: crash (in {TEST}::test_end: SIGSEGV)" in refused(world)["against"]


def test_leaving_without_a_word(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_end():\n    import os\n\n    os._exit(0)\n")
    against = refused(world)["against"]
    assert f"after: crash (in {TEST}::test_end: the interpreter left with status 0)" in against


def test_out_of_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchq.testing.schedule.MEMORY_SHARE", 1e-9)
    monkeypatch.setattr("patchq.testing.schedule.total_memory", lambda: 2 * 300 * 10**15)
    bring(
        world,
        GOOD
        + b"\n\ndef test_eat():\n    import time\n\n    x = [b'x' * 10**6 for _ in range(1000)]\n    time.sleep(5)\n",
    )
    against = refused(world, "-j", "2")["against"]
    assert any(a.startswith(f"after: out of memory (in {TEST}::test_eat") for a in against), against


def test_memory_error(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_eat():\n    raise MemoryError\n")
    assert f"after: out of memory (in {TEST}::test_eat: MemoryError)" in refused(world)["against"]


def test_collection_error_with_the_patch(world: World) -> None:
    bring(world, b"import no_such_module_at_all\n" + GOOD)
    against = refused(world)["against"]
    assert (
        f"after: collection error ({TEST}: ModuleNotFoundError: No module named 'no_such_module_at_all')"
        in against
    )


def test_collection_error_before_is_no_proof(world: World) -> None:
    production = {"pkg/fresh.py": b"def new():\n    return 1\n"}
    test = b"from pkg.fresh import new\n\n\ndef test_new():\n    assert new() == 1\n"
    bring(world, test, production=production)
    against = refused(world)["against"]
    assert against == [f"before: collection error: {TEST}: ModuleNotFoundError: No module named 'pkg.fresh'"]


def test_collection_error_before_where_the_patch_says_so(world: World) -> None:
    production = {"pkg/fresh.py": b"def new():\n    return 1\n"}
    test = b"from pkg.fresh import new\n\n\ndef test_new():\n    assert new() == 1\n"
    bring(
        world,
        test,
        production=production,
        tests=[{"gate": "cpu", "run": [TEST], "before": "collection error"}],
    )
    assert prove(world).code == 0


@pytest.mark.parametrize(
    "path",
    ["'pkg/model.py'", "__file__", "'left.txt'"],
    ids=["production", "absolute", "new"],
)
def test_writing_into_its_tree(world: World, path: str) -> None:
    test = GOOD + f"\n\ndef test_write():\n    with open({path}, 'a') as f:\n        f.write('x')\n".encode()
    bring(world, test)
    against = refused(world)["against"]
    assert any(a.startswith("after: wrote into its tree (") for a in against), against
    world.describe("0001-better", tests=[{"gate": "cpu", "run": [f"{TEST}::test_first"]}])
    assert prove(world).code == 0


@pytest.mark.parametrize("path", ["pkg/model.py", "left.txt"])
def test_writing_into_its_tree_where_the_kernel_lets_it(
    world: World,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    find_isolation.cache_clear()
    try:
        bring(world, GOOD + f"\n\ndef test_write():\n    open('{path}', 'a').write('x')\n".encode())
        found = refused(world)
        assert f"after: wrote into its tree ({path})" in found["against"]
        world.describe("0001-better", tests=[{"gate": "cpu", "run": [f"{TEST}::test_first"]}])
        assert prove(world).code == 0
    finally:
        find_isolation.cache_clear()


def test_a_stand_in_that_hides_a_wrong_keyword(world: World) -> None:
    caller = b"from pkg import model\n\n\ndef call():\n    return model.third(layer=1)\n"
    test = (
        b"from pkg import model\n\n\ndef test_call(monkeypatch):\n    from pkg import caller\n\n"
        b"    seen = {}\n    monkeypatch.setattr(model, 'third', lambda **kwargs: seen.update(kwargs))\n"
        b"    caller.call()\n    assert seen == {'layer': 1}\n"
    )
    bring(world, test, production={"pkg/caller.py": caller})
    found = refused(world)
    assert found["after"] == {**COUNTS, "passed": 1}
    assert found["against"] == [
        "wrong call: pkg/caller.py:5: model.third takes no keyword 'layer' (pkg/model.py:9)",
    ]


def test_neighbours_that_change(world: World) -> None:
    world.series(
        (
            "0001-neighbour",
            {
                "tests/test_near.py": b"from pkg import model\n\n\ndef test_a():\n    assert model.third() == 3\n"
            },
        ),
        ("0002-better", {"pkg/model.py": BETTER.replace(b"return 3", b"return 4"), TEST: GOOD}),
    )
    world.describe("0002-better", depends=["0001-neighbour"], neighbours=["tests/test_near.py"])
    found = refused(world, "0002")
    assert found["against"] == [
        "neighbour: tests/test_near.py::test_a: passed without the patch, failed with it"
    ]
    assert found["neighbours"] == {"same": 0}


def test_neighbours_that_fail_alike_are_not_its_fault(world: World) -> None:
    near = b"from pkg import model\n\n\ndef test_a():\n    assert model.third() == 5\n\n\ndef test_b():\n    pass\n"
    world.series(
        ("0001-neighbour", {"tests/test_near.py": near}),
        ("0002-better", {"pkg/model.py": BETTER, TEST: GOOD}),
    )
    world.describe("0002-better", depends=["0001-neighbour"], neighbours=["tests/test_near.py"])
    result = prove(world, "0002")
    assert result.code == 0
    assert result.json["results"][0]["neighbours"] == {"same": 2}


def test_a_test_only_patch_is_proved_against_what_it_depends_on(world: World) -> None:
    world.series(("0001-better", {"pkg/model.py": BETTER}), ("0002-oracle", {TEST: GOOD}))
    world.describe("0002-oracle", depends=["0001-better"])
    (found,) = prove(world, "0002").json["results"]
    assert found["proved"] is True
    assert found["kind"] == "test-only"
    assert found["before"] == {**COUNTS, "failed": 1}


def test_a_test_only_patch_that_depends_on_nothing_proves_nothing(world: World) -> None:
    world.series(
        ("0001-oracle", {TEST: b"from pkg import model\n\n\ndef test_it():\n    assert model.first() == 1\n"})
    )
    found = refused(world)
    assert found["before"] is None
    assert found["against"] == ["before: test-only, and depends on nothing that could be taken away"]


def test_a_gate_beyond_this_machine_is_neither_passed_nor_skipped(world: World) -> None:
    bring(
        world, GOOD,
        tests=[{"gate": "cpu", "run": [TEST]}, {"gate": "native", "run": [TEST]}],
        target="sm_87",
    )  # fmt: skip
    result = prove(world)
    assert result.code == 0
    native = result.json["results"][1]
    assert native["status"].startswith("not run: needs native sm_87")
    assert (native["proved"], native["before"], native["after"]) == (None, None, None)
    only = prove(world, "--gate", "native")
    assert only.code == 3
    assert only.json["results"] == [native]


def test_a_program_that_is_not_here_is_named(world: World) -> None:
    bring(
        world, GOOD,
        tests=[{"gate": "cpu", "run": [TEST]}, {"gate": "compile", "run": [TEST], "needs": ["no-such-compiler"]}],
    )  # fmt: skip
    compiled = prove(world).json["results"][1]
    assert compiled["status"] == "not run: needs a compiler for sm_86 (no-such-compiler is not on PATH)"
    assert (compiled["proved"], compiled["after"]) == (None, None)


def test_without_prove_only_the_run_with_the_patch(world: World) -> None:
    bring(world, b"def test_nothing():\n    pass\n")
    result = world.ok("test", "--python", sys.executable)
    (found,) = result["results"]
    assert (found["status"], found["proved"], found["before"]) == ("passed", None, None)


def test_the_stack(world: World) -> None:
    second = BETTER.replace(b"return 2", b"return 20")
    world.series(
        ("0001-better", {"pkg/model.py": BETTER, TEST: GOOD}),
        ("0002-second", {
            "pkg/model.py": second,
            "tests/test_second.py": b"from pkg import model\n\n\ndef test_both():\n    assert (model.first(), model.second()) == (10, 20)\n",
        }),
    )  # fmt: skip
    world.describe("0002-second", tests=[{"gate": "cpu", "run": ["tests/test_second.py"]}])
    stack = prove(world, "--stack")
    assert stack.code == 0
    locked = (world.project / "upstream.lock").read_text()
    assert all(r["tree"] in locked and r["mode"] == "stack" for r in stack.json["results"])
    alone = prove(world)
    assert alone.code == 1
    assert [r["proved"] for r in alone.json["results"]] == [True, False]


def test_model_of_the_throwaway_upstream() -> None:
    from tests.support.world import UPSTREAM

    assert UPSTREAM["pkg/model.py"] == MODEL
