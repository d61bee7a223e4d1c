"""Faults of recipes, with scripted replies: what a run hands over agrees with what its roles found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from run_events import read_events
from scenario.scripted_roles import ScriptedRoles, to_json
from suture.api import WriteOptions, solve, verify
from suture.core.ledger import find_run
from suture.core.records import Result
from suture.core.settings import BudgetSettings, CertificationSettings, LoopSettings, PathSettings, Settings
from suture.interfaces.narrative.result_text import result_as_json
from suture.interfaces.narrative.run_progress_text import ProgressNarrator, render_short_result
from suture.loop.intake.write_task import build_write_task
from suture.loop.nodes.prepare import find_unused_examples
from suture.loop.roles import generated_tests
from suture.models import Message, Reply, Sampling

ADD = "Write a function add(a, b) that adds two numbers.\n\n>>> add(1, 2)\n3\n>>> add(-1, 1)\n0\n"
ADDS = "```python\ndef add(a, b):\n    return a + b\n```"
LARGEST = (
    "Write a function largest(items) that gives the largest item of a list.\n\n>>> largest([1, 3, 2])\n3\n"
)
OVERFITTED = "```python\ndef largest(items):\n    return max([0, *items])\n```"
RIGHT_ASSERTS = (
    "```python\nassert largest([-1]) == -1\nassert largest([-5, -2]) == -2\n"
    "assert largest([-9, -7]) == -7\n```"
)


class RecordingRoles(ScriptedRoles):
    """Scripted roles that record every prompt."""

    def __init__(self, replies: Mapping[str, Sequence[str]], name: str = "scripted:cast") -> None:
        super().__init__(replies)
        self.name = name
        self.prompts: list[str] = []

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Reply:
        self.prompts.append(messages[-1].content)
        return await super().complete(messages, sampling)

    def prompts_of(self, role: str) -> list[str]:
        return [prompt for name, prompt in zip(self.calls, self.prompts, strict=True) if name == role]


def make_settings(home: Path, recipe: str) -> Settings:
    return Settings(
        paths=PathSettings(home=home),
        loop=LoopSettings(recipe=recipe),
        budget=BudgetSettings(attempts=6, seconds=60),
        certification=CertificationSettings(mutants=0),
    )


def last_lines(result: Result, home: Path) -> list[str]:
    return list(render_short_result(result, find_run(home, result.run_id)))


async def test_code_that_passes_is_not_sent_back_as_failing(tmp_path: Path) -> None:
    critic = to_json(issues=["It does not add strings."], score=0.4, approved=False)
    model = RecordingRoles({"coder": [ADDS], "critic": [critic]})

    result = await solve(ADD, WriteOptions(settings=make_settings(tmp_path, "critic"), model=model))

    _, revision, *_ = model.prompts_of("coder")
    assert "The code below passes all 2 checks." in revision
    assert "A reviewer objects:\n- It does not add strings." in revision
    assert "fails its tests" not in revision
    assert "no output" not in revision
    assert model.calls == [
        "coder",
        "critic",
        "coder",
    ]  # The coder has weighed the objection and kept the code.
    assert result.outcome == "healed"
    objection = (
        "A model in the role of critic objects to this code, but only tests decide: It does not add strings."
    )
    assert objection in last_lines(result, tmp_path)


async def test_generated_tests_that_fail_on_the_result_are_shown_and_lower_the_confidence(
    tmp_path: Path,
) -> None:
    model = RecordingRoles(
        {"coder": [OVERFITTED], "adversarial_tester": [RIGHT_ASSERTS], "summariser": ["I am sorry."]}
    )

    settings = make_settings(tmp_path, "adversarial")
    result = await solve(LARGEST, WriteOptions(settings=settings, model=model))

    assert result.outcome == "healed"  # A test that a model wrote never decides below the threshold.
    assert [test.provenance for test in result.failing_tests] == ["adversarial"] * 3
    assert all(test.trust < 0.9 for test in result.failing_tests)
    assert result.confidence <= 0.5
    assert (find_run(tmp_path, result.run_id).path / "certificate.json").is_file()
    assert all([finding.ok async for finding in verify("last", settings=settings)])
    first, *rest = last_lines(result, tmp_path)
    assert first == "Done: the only check passes, but 3 generated tests fail."
    assert any("assert largest([-1]) == -1 (trust" in line and "got 0" in line for line in rest)
    shown = result_as_json(result, find_run(tmp_path, result.run_id), ())
    assert next(test["test"].strip() for test in shown["failing_tests"]).startswith("assert largest(")
    (event,) = [
        event for event in read_events(tmp_path, result.run_id) if event.kind == "generated_tests.failed"
    ]
    assert len(event.data["tests"]) == 3


async def test_a_result_that_passes_every_generated_test_is_handed_over_without_doubt(tmp_path: Path) -> None:
    right = "```python\ndef largest(items):\n    return max(items)\n```"
    model = RecordingRoles({"coder": [right], "adversarial_tester": [RIGHT_ASSERTS]})

    result = await solve(LARGEST, WriteOptions(settings=make_settings(tmp_path, "adversarial"), model=model))

    assert result.failing_tests == ()
    assert last_lines(result, tmp_path)[0] == "Done: the only check passes."


CODEC = (
    "Write two functions: encode(text) shortens runs, and decode(text) restores them.\n\n"
    ">>> encode('aab')\n'2a1b'\n\ndecode('2a1b') returns 'aab'.\n"
)
ENCODE = "def encode(text):\n    return '2a1b'\n\n\n"


async def test_an_example_of_a_second_function_decides(tmp_path: Path) -> None:
    wrong = f"```python\n{ENCODE}def decode(text):\n    return ''\n```"
    right = f"```python\n{ENCODE}def decode(text):\n    return 'aab'\n```"
    model = RecordingRoles(
        {
            "planner": [to_json(subtasks=[{"goal": "write both", "needs": []}])],
            "subtask_coder": [wrong],
            "coder": [right],
            "spec_tester": ["I am sorry."],
            "property_tester": ["I am sorry."],
            "diagnose": ["I am sorry."],
            "summariser": ["I am sorry."],
        }
    )

    result = await solve(CODEC, WriteOptions(settings=make_settings(tmp_path, "planner"), model=model))

    assert result.outcome == "healed"
    assert result.candidate is not None
    assert "return 'aab'" in result.candidate.files["solution.py"]
    assert last_lines(result, tmp_path)[0] == "Done: all 2 checks pass."


async def test_the_terminal_names_the_examples_that_were_read_from_prose_and_those_that_were_not(
    tmp_path: Path,
) -> None:
    statement = "Write hms(seconds). 3661 becomes '1:01:01'. 59 becomes 59 or so. hms(0) -> `0:00:00`.\n"
    code = "```python\ndef hms(seconds):\n    return '1:01:01'\n```"
    model = RecordingRoles({"coder": [code]})

    result = await solve(statement, WriteOptions(settings=make_settings(tmp_path, "greedy"), model=model))

    narrator = ProgressNarrator()
    lines = [line for event in read_events(tmp_path, result.run_id) for line in narrator.lines_for(event)]
    assert "Read from the text as checks: hms(3661) == '1:01:01'" in lines
    assert (
        "Note: 2 examples in the text could not be read as checks: 59 becomes 59 or so; hms(0) -> `0:00:00`."
        in lines
    )


async def test_failing_generated_tests_are_shown_even_if_the_time_is_over_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = RecordingRoles(
        {"coder": [OVERFITTED], "adversarial_tester": [RIGHT_ASSERTS], "summariser": ["I am sorry."]}
    )

    async def run_nothing(*_: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(generated_tests, "run_untrusted_checks", run_nothing)
    result = await solve(LARGEST, WriteOptions(settings=make_settings(tmp_path, "adversarial"), model=model))

    assert len(result.failing_tests) == 3


def test_an_example_of_a_second_function_in_another_language_is_named() -> None:
    examples = "encode('aab') => '2a1b'\ndecode('2a1b') => 'aab'\n"
    statement = f"function encode(text) and decode(text) in JavaScript.\n\n{examples}"
    task = build_write_task(statement, language="javascript", entry_point="encode")
    assert find_unused_examples(task) == ("decode('2a1b') => 'aab'",)
