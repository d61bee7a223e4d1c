"""Law 1 for hidden checks that appear as calls in other words."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.test_prompt_leaks import asked
from suture.agents import describe_fact
from suture.bench.datasets.evalplus import CASE
from suture.bench.problem import Problem, Regime
from suture.bench.prompt_leaks import collect_hidden_calls, find_leaks, measure_rarity
from suture.bench.running.bench_folder import BenchFolder
from suture.bench.running.benchmark import run_benchmark
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.ledger import RunFolder
from suture.core.records import Counterexample
from suture.core.settings import Settings
from suture.judge.split.assert_recorder import shorten_repr
from suture.models import ScriptedModel
from suture.sandbox import BubblewrapSandbox

LONG = [n * n % 1009 for n in range(500)]
STATEMENT = '''def third(xs, word=""):
    """A third of each.

    >>> third([300, 600], "plain")
    [100.0, 200.0]
    """
'''
AS_HUMANEVAL = f"""
def check(candidate):
    assert candidate([123456789, 987654321]) == [41152263.0, 329218107.0]
    assert candidate([-7], 'a "quoted" word') == [-7 / 3]
    assert candidate({LONG}) == [x / 3 for x in {LONG}]
    assert candidate([3]) == [1.0]
    assert candidate([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) != []
    assert candidate([300, 600, 300, 600]) != []
    assert candidate(list(range(12345, 12347))) != []

check(third)
"""
GIVEN = ("[123456789, 987654321]", "[-7], 'a \"quoted\" word'", LONG, [3])
AS_EVALPLUS = "".join(f"{CASE}({given})\n" for given in GIVEN)
BIG = "third([123456789, 987654321])"
QUOTED = "third([-7], 'a \"quoted\" word')"


def problem(hidden: str = AS_HUMANEVAL, visible: str = "") -> Problem:
    return Problem(
        id="Made/1",
        dataset="made",
        kind="write",
        statement=STATEMENT,
        entry_point="third",
        visible=visible,
        hidden=hidden,
        reference="def third(xs, word=''):\n    return [x / 3 for x in xs]\n",
        licence="none",
        source="made up",
    )


def told(call: str, expected: str = "[1.0]") -> str:
    """As a repair prompt tells a failure."""
    return describe_fact(Counterexample(check_id="a check", call=call, expected=expected, actual="None"))


@pytest.mark.parametrize("hidden", [AS_HUMANEVAL, AS_EVALPLUS], ids=["humaneval", "evalplus"])
@pytest.mark.parametrize(
    ("prompt", "leak"),
    [
        (told(BIG), BIG),
        (told(BIG.replace(", ", ",")), BIG),
        (f"Make {BIG} right.", BIG),
        ("It fails:\n    third( [ 123456789,\n        987654321 ] )\n", BIG),
        (told(QUOTED), QUOTED),
        (told("third([-7], \"a 'quoted' word\")"), QUOTED),
        (told(f"third({shorten_repr(LONG)})"), f"third({LONG})"),
    ],
)
async def test_a_call_is_found_in_any_wording(tmp_path: Path, hidden: str, prompt: str, leak: str) -> None:
    run = await asked(tmp_path, "x = 1", STATEMENT, f"Mend this:\n- {prompt}\n")
    assert find_leaks(problem(hidden), run) == (leak,)


@pytest.mark.parametrize(("hidden", "name"), [(AS_HUMANEVAL, "candidate"), (AS_EVALPLUS, CASE)])
async def test_a_call_is_found_under_the_name_that_the_test_program_uses(
    tmp_path: Path, hidden: str, name: str
) -> None:
    run = await asked(tmp_path, "x = 1", STATEMENT, told(BIG.replace("third", name)))
    assert BIG in find_leaks(problem(hidden), run)


@pytest.mark.parametrize(
    "prompt",
    [
        told("third([3])"),
        told("third([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])"),
        told("third([300, 600, 300, 600])"),
        told("third([12345, 12346])"),
        told("third([300, 600], 'plain')"),
        told("third([123456789, 987654322])"),
        told("another_third([123456789, 987654321])"),
        "third of [123456789, 987654321]",
    ],
)
async def test_common_and_different_calls_are_no_leaks(tmp_path: Path, prompt: str) -> None:
    run = await asked(tmp_path, "x = 1", STATEMENT, prompt)
    assert find_leaks(problem(), run) == ()


@pytest.mark.parametrize(
    "said",
    [
        f"assert {BIG} == [1]",
        "third([123456789,987654321])",
        "for xs in ([123456789, 987654321], [1]):\n    third(xs)",
    ],
)
async def test_a_call_that_the_model_wrote_is_no_leak(tmp_path: Path, said: str) -> None:
    run = await asked(tmp_path, said, STATEMENT, told(BIG))
    assert find_leaks(problem(), run) == ()


async def test_a_model_that_repeats_a_call_does_not_hide_it(tmp_path: Path) -> None:
    run = await asked(tmp_path, f"So {BIG} is wrong.", told(BIG))
    assert find_leaks(problem(), run) == (BIG,)


async def test_visible_checks_are_secret_in_the_self_regime(tmp_path: Path) -> None:
    """In the regime `self`; what the statement shows may be told in either."""
    visible = "assert third([4321, 8765]) == [1481.3, 2921.6]"
    one = problem(visible=visible, hidden=f"{AS_HUMANEVAL}\n{visible}\n")
    run = await asked(
        tmp_path / "fact", "x = 1", told("third([4321, 8765])"), told("third([300, 600], 'plain')")
    )
    assert find_leaks(one, run, "visible") == ()
    assert find_leaks(one, run, "self") == ("third([4321, 8765])",)
    run = await asked(tmp_path / "line", "x = 1", f"It fails: {visible}")
    assert find_leaks(one, run, "visible") == ()
    assert visible in find_leaks(one, run, "self")
    apart = problem(visible=visible)
    assert visible in find_leaks(apart, run, "self")
    assert find_leaks(apart, run, "visible") == ()


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("[3]", 1),
        ("[123456789]", 9),
        ("1000000, 999999", 3),
        ("'aaaaaaaaaaaa'", 1),
        ("'hello hello'", 4),
        ("[1, 2, 3, 4, 5, 600]", 4),
        ("[5, 10, 15, 20], 25", 3),
    ],
)
def test_rarity_of_arguments(text: str, weight: int) -> None:
    assert measure_rarity(text) == weight


def test_a_test_program_that_is_no_python_has_no_calls() -> None:
    assert collect_hidden_calls("assert third(", "third").beginnings == {}
    assert collect_hidden_calls("check(x for", "third").names == {"third", CASE}


@pytest.mark.parametrize("regime", ["visible", "self", "oracle"])
async def test_the_prompts_of_a_loop_that_fails(
    tmp_path: Path, regime: Regime, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real loop, always wrong, told so by what it may see: only the oracle's words give calls away."""
    record = {
        "task_id": "Made/1",
        "prompt": STATEMENT,
        "entry_point": "third",
        "canonical_solution": "    return [x / 3 for x in xs]\n",
        "test": AS_HUMANEVAL.removesuffix("check(third)\n"),
    }
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(record).encode()))
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wrong = ScriptedModel(
        ["```python\ndef third(xs, word=''):\n    return None\n```"], name="scripted:x", repeat_last=True
    )
    plan = BenchmarkPlan(
        ids={"humaneval": ("Made/1",)},
        arms=("reflexion",),
        models=("scripted:x",),
        caps=(100,),
        regime=regime,
    )
    folder = BenchFolder(tmp_path / "bench")
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: wrong)
    (row,) = folder.rows()
    assert (row.fault, row.solved()) == ("", False)
    assert row.calls > 0
    (made,) = plan.problems()
    found = find_leaks(made, RunFolder(folder.path / "runs" / row.run), regime)
    assert (BIG in found) == (regime == "oracle")
    assert regime == "oracle" or found == ()
