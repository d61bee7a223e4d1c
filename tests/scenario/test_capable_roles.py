"""Roles of capable models: examples as data, objections that a run confirms or refutes, and full failing tests."""

from __future__ import annotations

import json
from pathlib import Path

from run_events import read_event_data, read_events
from scenario.scripted_roles import to_json
from scenario.test_role_faults import (
    ADD,
    ADDS,
    LARGEST,
    OVERFITTED,
    RecordingRoles,
    last_lines,
    make_settings,
)
from suture.api import WriteOptions, solve
from suture.core.records import Result
from suture.interfaces.narrative.run_progress_text import ProgressNarrator

CAPABLE = "openai:cast"
"""A name whose profile is that of a capable model with structured output."""


def example(call: str, expected: str, *, raises: bool = False) -> dict[str, object]:
    return {"demand": "the largest item of a list", "call": call, "expected": expected, "raises": raises}


def objections_reply(call: str, expected: str) -> str:
    objection = {**example(call, expected), "problem": "It ignores negative items."}
    return to_json(objections=[objection], score=0.3)


async def run_recipe(recipe: str, task: str, model: RecordingRoles, home: Path) -> Result:
    return await solve(task, WriteOptions(settings=make_settings(home, recipe), model=model))


async def test_an_objection_that_a_run_refutes_is_dropped(tmp_path: Path) -> None:
    model = RecordingRoles(
        {"coder": [OVERFITTED], "critic": [objections_reply("largest([2, 5])", "5")]}, CAPABLE
    )

    result = await run_recipe("critic", LARGEST, model, tmp_path)

    assert model.calls == ["coder", "critic"]
    (criticised,) = read_event_data(tmp_path, "candidate.criticised")
    assert criticised["critique"]["approved"]
    assert len(criticised["refuted"]) == 1
    assert last_lines(result, tmp_path)[0] == "Done: the only check passes."


async def test_an_objection_that_a_run_confirms_reaches_the_coder_with_what_the_run_saw(
    tmp_path: Path,
) -> None:
    right = "```python\ndef largest(items):\n    return max(items)\n```"
    model = RecordingRoles(
        {"coder": [OVERFITTED, right], "critic": [objections_reply("largest([-1])", "-1")]}, CAPABLE
    )

    result = await run_recipe("critic", LARGEST, model, tmp_path)

    _, revision = model.prompts_of("coder")
    assert "A reviewer objects:\n- It ignores negative items." in revision
    assert "a run shows it" in revision
    assert result.candidate is not None
    assert "max(items)" in result.candidate.files["solution.py"]
    assert result.failing_tests == ()


async def test_a_confirmed_objection_is_shown_if_the_coder_keeps_its_code(tmp_path: Path) -> None:
    model = RecordingRoles(
        {"coder": [OVERFITTED], "critic": [objections_reply("largest([-1])", "-1")]}, CAPABLE
    )

    result = await run_recipe("critic", LARGEST, model, tmp_path)

    assert [test.test.strip() for test in result.failing_tests] == ["assert largest([-1]) == -1"]
    assert last_lines(result, tmp_path)[0] == "Done: the only check passes, but 1 generated test fails."


async def test_testers_of_capable_models_state_examples_as_data(tmp_path: Path) -> None:
    examples = [
        example("largest([-4])", "-4"),
        example("largest([])", "ValueError", raises=True),
        example("x", "1"),
    ]
    model = RecordingRoles(
        {"coder": [OVERFITTED], "adversarial_tester": [json.dumps({"examples": examples})]}, CAPABLE
    )

    result = await run_recipe("adversarial", LARGEST, model, tmp_path)

    (prompt,) = model.prompts_of("adversarial_tester")
    assert "Quote the words of the task" in prompt
    (written,) = read_event_data(tmp_path, "tests.written")
    assert [test.strip().splitlines()[-1] for test in written["tests"]] == [
        "assert largest([-4]) == -4",
        "assert raised_by(lambda: largest([])) == 'ValueError'",
    ]
    assert written["dropped"] == {"not_python": 1}
    assert len(result.failing_tests) == 2


async def test_a_capable_model_reads_unread_examples_which_decide_nothing(tmp_path: Path) -> None:
    task = "Write hms(seconds).\n\n>>> hms(0)\n'0:00:00'\n\nAn hour and a second: 3601 gives \"1:00:01\", of course.\n"
    code = "```python\ndef hms(seconds):\n    return '0:00:00'\n```"
    reading = json.dumps({"examples": [example("hms(3601)", "'1:00:01'")]})
    model = RecordingRoles({"coder": [code], "example_reader": [reading]}, CAPABLE)

    result = await run_recipe("greedy", task, model, tmp_path)

    assert result.outcome == "healed"
    assert [(test.provenance, test.trust < 0.9) for test in result.failing_tests] == [("spec", True)]
    narrator = ProgressNarrator()
    lines = [line for event in read_events(tmp_path, result.run_id) for line in narrator.lines_for(event)]
    assert any(
        "reads the unread examples as: hms(3601) == '1:00:01'; they do not decide" in line for line in lines
    )


async def test_a_small_model_is_not_asked_to_read_examples(tmp_path: Path) -> None:
    model = RecordingRoles({"coder": [ADDS]})
    await run_recipe("greedy", f"{ADD}\n2 and 3 becomes 5 or so. add(1, 1) -> two\n", model, tmp_path)
    assert model.calls == ["coder"]


async def test_the_debugger_of_a_capable_model_sees_the_failing_tests_in_full(tmp_path: Path) -> None:
    wrong = "```python\ndef largest(items):\n    return min(items)\n```"
    right = "```python\ndef largest(items):\n    return max(items)\n```"
    diagnosis = to_json(root_cause="min", category="wrong_logic", strategy="minimal", confidence=0.9)
    prompts = {}
    for name in (CAPABLE, "scripted:cast"):
        model = RecordingRoles(
            {
                "coder": [wrong, right],
                "diagnose": [diagnosis],
                "summariser": [to_json(lessons=["Read."])],
                "adversarial_tester": ["I am sorry."],
            },
            name,
        )
        await run_recipe("adversarial", LARGEST, model, tmp_path / name.partition(":")[0])
        (prompts[name],) = model.prompts_of("diagnose")
    assert "gave 1, but should give 3" in prompts["scripted:cast"]
    assert "assert largest([1, 3, 2]) == 3" in prompts[CAPABLE]
    assert "### solution.py (whole file)" in prompts[CAPABLE]
