"""Law 1 for hidden checks that appear in prompts as calls in another form."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.test_prompt_leaks import record_run
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
HUMANEVAL_CHECKS = f"""
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
ARGUMENTS = ("[123456789, 987654321]", "[-7], 'a \"quoted\" word'", LONG, [3])
EVALPLUS_CHECKS = "".join(f"{CASE}({arguments})\n" for arguments in ARGUMENTS)
CALL_WITH_NUMBERS = "third([123456789, 987654321])"
CALL_WITH_QUOTES = "third([-7], 'a \"quoted\" word')"


def make_problem(hidden: str = HUMANEVAL_CHECKS, visible: str = "") -> Problem:
    """Return a problem with these hidden and visible checks."""
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


def render_failure(call: str, expected: str = "[1.0]") -> str:
    """Return the text of a failure in a repair prompt."""
    return describe_fact(Counterexample(check_id="a check", call=call, expected=expected, actual="None"))


@pytest.mark.parametrize("hidden", [HUMANEVAL_CHECKS, EVALPLUS_CHECKS], ids=["humaneval", "evalplus"])
@pytest.mark.parametrize(
    ("prompt", "leak"),
    [
        (render_failure(CALL_WITH_NUMBERS), CALL_WITH_NUMBERS),
        (render_failure(CALL_WITH_NUMBERS.replace(", ", ",")), CALL_WITH_NUMBERS),
        (f"Make {CALL_WITH_NUMBERS} right.", CALL_WITH_NUMBERS),
        ("It fails:\n    third( [ 123456789,\n        987654321 ] )\n", CALL_WITH_NUMBERS),
        (render_failure(CALL_WITH_QUOTES), CALL_WITH_QUOTES),
        (render_failure("third([-7], \"a 'quoted' word\")"), CALL_WITH_QUOTES),
        (render_failure(f"third({shorten_repr(LONG)})"), f"third({LONG})"),
    ],
)
async def test_a_call_is_found_in_any_wording(tmp_path: Path, hidden: str, prompt: str, leak: str) -> None:
    run = await record_run(tmp_path, "x = 1", STATEMENT, f"Mend this:\n- {prompt}\n")
    assert find_leaks(make_problem(hidden), run) == (leak,)


@pytest.mark.parametrize(("hidden", "name"), [(HUMANEVAL_CHECKS, "candidate"), (EVALPLUS_CHECKS, CASE)])
async def test_a_call_is_found_under_the_name_that_the_test_program_uses(
    tmp_path: Path, hidden: str, name: str
) -> None:
    run = await record_run(
        tmp_path, "x = 1", STATEMENT, render_failure(CALL_WITH_NUMBERS.replace("third", name))
    )
    assert CALL_WITH_NUMBERS in find_leaks(make_problem(hidden), run)


@pytest.mark.parametrize(
    "prompt",
    [
        render_failure("third([3])"),
        render_failure("third([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])"),
        render_failure("third([300, 600, 300, 600])"),
        render_failure("third([12345, 12346])"),
        render_failure("third([300, 600], 'plain')"),
        render_failure("third([123456789, 987654322])"),
        render_failure("another_third([123456789, 987654321])"),
        "third of [123456789, 987654321]",
    ],
)
async def test_common_and_different_calls_are_no_leaks(tmp_path: Path, prompt: str) -> None:
    run = await record_run(tmp_path, "x = 1", STATEMENT, prompt)
    assert find_leaks(make_problem(), run) == ()


@pytest.mark.parametrize(
    "reply",
    [
        f"assert {CALL_WITH_NUMBERS} == [1]",
        "third([123456789,987654321])",
        "for xs in ([123456789, 987654321], [1]):\n    third(xs)",
    ],
)
async def test_a_call_that_the_model_wrote_is_no_leak(tmp_path: Path, reply: str) -> None:
    run = await record_run(tmp_path, reply, STATEMENT, render_failure(CALL_WITH_NUMBERS))
    assert find_leaks(make_problem(), run) == ()


async def test_a_model_that_repeats_a_call_does_not_hide_it(tmp_path: Path) -> None:
    run = await record_run(tmp_path, f"So {CALL_WITH_NUMBERS} is wrong.", render_failure(CALL_WITH_NUMBERS))
    assert find_leaks(make_problem(), run) == (CALL_WITH_NUMBERS,)


async def test_visible_checks_are_secret_in_the_self_regime(tmp_path: Path) -> None:
    """Calls in the statement are allowed in every regime."""
    visible = "assert third([4321, 8765]) == [1481.3, 2921.6]"
    problem_with_visible_check = make_problem(visible=visible, hidden=f"{HUMANEVAL_CHECKS}\n{visible}\n")
    run = await record_run(
        tmp_path / "fact",
        "x = 1",
        render_failure("third([4321, 8765])"),
        render_failure("third([300, 600], 'plain')"),
    )
    assert find_leaks(problem_with_visible_check, run, "visible") == ()
    assert find_leaks(problem_with_visible_check, run, "self") == ("third([4321, 8765])",)

    run = await record_run(tmp_path / "line", "x = 1", f"It fails: {visible}")
    assert find_leaks(problem_with_visible_check, run, "visible") == ()
    assert visible in find_leaks(problem_with_visible_check, run, "self")

    problem_without_overlap = make_problem(visible=visible)
    assert visible in find_leaks(problem_without_overlap, run, "self")
    assert find_leaks(problem_without_overlap, run, "visible") == ()


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
def test_the_rarity_of_arguments_is_measured(text: str, weight: int) -> None:
    assert measure_rarity(text) == weight


def test_a_test_program_with_invalid_syntax_has_no_calls() -> None:
    assert collect_hidden_calls("assert third(", "third").beginnings == {}
    assert collect_hidden_calls("check(x for", "third").names == {"third", CASE}


@pytest.mark.parametrize("regime", ["visible", "self", "oracle"])
async def test_only_a_failing_loop_of_the_oracle_regime_leaks_calls(
    tmp_path: Path, regime: Regime, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real loop gets feedback on wrong code; only the oracle regime puts hidden calls into it."""
    record = {
        "task_id": "Made/1",
        "prompt": STATEMENT,
        "entry_point": "third",
        "canonical_solution": "    return [x / 3 for x in xs]\n",
        "test": HUMANEVAL_CHECKS.removesuffix("check(third)\n"),
    }
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(json.dumps(record).encode()))
    monkeypatch.setenv("SUTURE_DATA", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wrong_model = ScriptedModel(
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
    await run_benchmark(plan, folder, Settings(), opener=lambda settings, name: wrong_model)
    (row,) = folder.rows()
    assert (row.fault, row.solved()) == ("", False)
    assert row.calls > 0

    (problem_of_plan,) = plan.problems()
    leaks = find_leaks(problem_of_plan, RunFolder(folder.path / "runs" / row.run), regime)
    assert (CALL_WITH_NUMBERS in leaks) == (regime == "oracle")
    assert regime == "oracle" or leaks == ()
