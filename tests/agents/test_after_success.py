"""The property tester and the optimiser."""

from __future__ import annotations

from dataclasses import fields

import pytest

from suture.agents import RepairBrief, packaged_prompt
from suture.agents.roles.optimiser import draft_optimiser_prompt, optimised_files
from suture.agents.roles.testers import SpecTestBrief, draft_spec_test_prompt, properties_from_reply
from suture.agents.tuning import PROPERTIES_PER_CALL
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.errors import MalformedReply
from suture.judge import check_candidate, prepare_suite
from suture.judge.extraction.program_plans import TaskNames, plan_program
from suture.models import Reply
from suture.sandbox import BubblewrapSandbox

CODE = "def f(x):\n    y = x\n    return y + 1\n"
PROPERTIES = """\
```python
import random
from random import randint
rng = random.Random(7)

for _ in range(30):
    n = rng.randint(-9, 9)
    assert f(n) == n + 1

for _ in range(30):
    n = randint(-9, 9)
    assert f(n) > n

assert f(0) == 1
```"""


def test_the_property_tester_does_not_see_code() -> None:
    assert {field.name for field in fields(SpecTestBrief)} == {
        "statement",
        "entry_point",
        "examples",
        "count",
    }
    draft = draft_spec_test_prompt(
        SpecTestBrief(statement="Add one.", count=PROPERTIES_PER_CALL), packaged_prompt("property_tester")
    )
    assert "3 properties of the function of the task" in draft.messages(draft.full_counts())[-1].content


def test_properties_use_the_same_random_inputs_each_time() -> None:
    own_generator, module_functions, without_random = properties_from_reply(
        Reply(text=PROPERTIES), "f"
    ).checks
    assert "seeded_random = random.Random(0)\nrandint = seeded_random.randint\n" in module_functions.source
    assert own_generator.source.startswith("import random\n")
    assert without_random.source == "assert f(0) == 1\n"
    assert {check.provenance for check in (own_generator, module_functions, without_random)} == {"property"}


@pytest.mark.parametrize(
    "test",
    [
        "import random\nrandom.seed(3)\nfor _ in range(9):\n    assert f(random.random()) > 1",
        "import random as r, math\nfor _ in range(9):\n    assert f(r.random()) > math.pi - 3",
        "from random import random as draw, seed\nseed(1)\nfor _ in range(9):\n    assert f(draw()) > 1",
    ],
)
def test_every_random_source_of_a_property_is_seeded(test: str) -> None:
    (check,) = properties_from_reply(Reply(text=f"```python\n{test}\n```"), "f").checks

    def record_inputs() -> list[float]:
        values: list[float] = []

        def f(value: float) -> int:
            values.append(value)
            return 2

        exec(check.source, {"f": f})
        return values

    assert len(set(record_inputs())) == 9
    assert record_inputs() == record_inputs()
    assert (
        plan_program(check.source, TaskNames(files=("solution.py",), module="solution.py")).live_reason == ""
    )


async def test_properties_judge_a_candidate(sandbox: BubblewrapSandbox) -> None:
    generated = properties_from_reply(Reply(text=PROPERTIES), "f")

    suite = await prepare_suite(
        Task(statement="", entry_point="f", checks=generated.checks), sandbox, SandboxSettings()
    )

    right = Candidate(files={"solution.py": CODE}, origin="sample")
    wrong = Candidate(files={"solution.py": "def f(x):\n    return abs(x) + 1\n"}, origin="sample")
    assert (await check_candidate(right, suite)).all_passed

    verdict = await check_candidate(wrong, suite)
    assert verdict.failed == {generated.checks[0].id}
    assert verdict.counterexamples[0].call.startswith("f(-")


def test_the_optimiser_rewrites_passing_code() -> None:
    brief = RepairBrief(statement="Add one.", files={"m.py": CODE}, entry_point="f")
    draft = draft_optimiser_prompt(brief, packaged_prompt("optimiser"))
    text = draft.messages(draft.full_counts())[-1].content

    assert "shorter" in text
    assert "parameters of `f`" in text
    shorter = "def f(x):\n    return x + 1\n"
    assert optimised_files(Reply(text=f"```python\n{shorter}```"), brief) == {"m.py": shorter}

    with pytest.raises(MalformedReply):
        optimised_files(Reply(text=f"```python\n{CODE}```"), brief)

    with pytest.raises(MalformedReply):
        optimised_files(Reply(text="It is good as it is."), brief)
