"""Thinking with tools: what is read as an action, when it ends, and that a diagnosis is never made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from suture.errors import MalformedReply, SandboxBroken
from suture.models import Reply, Sampling
from suture.models.structured import ask as ask_typed
from suture.records import Counterexample, Diagnosis
from suture.roles import DiagnosisReply, Draft, packaged_prompt
from suture.roles.actions import Action, read_action
from suture.roles.debugger import DebugBrief, Investigation, investigate
from suture.roles.react import MOST_SHOWN, Step, Tool
from suture.testing import ScriptedModel

TOOLS = ("trace_call", "run_snippet")
DIAGNOSIS = (
    '{"root_cause": "x is returned", "category": "wrong_logic", "strategy": "minimal", "confidence": 0.7}'
)
TRACE = "TOOL: trace_call\nINPUT: f(1)"
FENCE = "```"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (TRACE, Action(tool="trace_call", input="f(1)")),
        ("Sure.\n\n**Tool:** `trace_call`\n**Input:** `f(1)`\n", Action(tool="trace_call", input="f(1)")),
        ("Action: TRACE_CALL\nAction Input: f(1)\nObservation: 2", Action(tool="trace_call", input="f(1)")),
        ('TOOL: trace_call("f(1)")', Action(tool="trace_call", input="f(1)")),
        ("TOOL: trace_call\nINPUT: f('a', \"b\")", Action(tool="trace_call", input="f('a', \"b\")")),
        (
            "TOOL: run_snippet\nINPUT: for n in (1, 2):\n    print(n)\nRESULT: 1 2",
            Action(tool="run_snippet", input="for n in (1, 2):\n    print(n)"),
        ),
        (f"{TRACE}\nThat should show it.", Action(tool="trace_call", input="f(1)")),
        (f"{TRACE}\nTOOL: done", Action(tool="trace_call", input="f(1)")),
        ("TOOL: done", Action(tool="done")),
        ("TOOL: trace_call", Action(tool="trace_call")),
        (
            f"TOOL: run_snippet\nINPUT:\n{FENCE}python\nx = 1\nprint(x)\n{FENCE}",
            Action(tool="run_snippet", code="x = 1\nprint(x)\n"),
        ),
    ],
)
def test_an_action_is_two_lines_however_untidy(text: str, action: Action) -> None:
    assert read_action(text, TOOLS) == action


@pytest.mark.parametrize(
    "text", ["", "I would look at line 3.", "INPUT: f(1)", "TOOL: rm_rf\nINPUT: /", "TOOL:"]
)
def test_what_names_no_tool_is_no_action(text: str) -> None:
    with pytest.raises(MalformedReply, match="run_snippet, trace_call, done"):
        read_action(text, TOOLS)


class Bench:
    """A debugger with a scripted model and a tool that notes what it was given."""

    def __init__(
        self, *replies: str | Exception, answer: str = "line 2: x -> returns 1", **more: Any
    ) -> None:
        self.model = ScriptedModel(replies, **more)
        self.prompts: list[str] = []
        self.steps: list[Step] = []
        self.used: list[str] = []
        self.answer = answer
        self.tools = [Tool(name=name, usage=f"{name} shows it", run=self.run) for name in TOOLS]

    async def run(self, action: Action) -> str:
        self.used.append(action.given)
        if self.answer == "broken":
            raise SandboxBroken("the wall fell")
        return self.answer

    async def ask(self, draft: Draft) -> Reply:
        messages = draft.messages(draft.full())
        self.prompts.append(messages[-1].content)
        return await self.model.complete(messages, Sampling())

    async def conclude(self, draft: Draft) -> DiagnosisReply:
        messages = draft.messages(draft.full())
        self.prompts.append(messages[-1].content)
        return (await ask_typed(self.model.complete, messages, DiagnosisReply, Sampling())).value

    async def investigate(self, most_steps: int = 5) -> Investigation:
        fact = Counterexample(check_id="c", call="f(1)", expected="2", got="1")
        brief = DebugBrief(statement="Add one.", files={"m.py": "def f(x):\n    return x\n"}, facts=[fact])
        return await investigate(
            brief,
            packaged_prompt("debugger"),
            self.tools,
            ask=self.ask,
            conclude=self.conclude,
            most_steps=most_steps,
            on_step=self.steps.append,
        )


async def test_it_looks_and_then_says_what_is_wrong() -> None:
    bench = Bench(TRACE, "TOOL: run_snippet\nINPUT: f(2)", "TOOL: done", DIAGNOSIS)
    found = await bench.investigate()
    assert found.diagnosis == Diagnosis(
        root_cause="x is returned", category="wrong_logic", strategy="minimal", confidence=0.7
    )
    assert found.trail.ended == "done"
    assert bench.used == ["f(1)", "f(2)"]
    assert list(found.trail.steps) == bench.steps
    assert [(step.number, step.tool) for step in bench.steps] == [(1, "trace_call"), (2, "run_snippet")]


async def test_each_step_sees_what_the_ones_before_showed() -> None:
    bench = Bench(TRACE, "TOOL: done", DIAGNOSIS)
    await bench.investigate()
    first, second, conclusion = bench.prompts
    assert "INPUT: f(1)" in first and "What you did" not in first  # noqa: PT018 - one thing
    assert "TOOL: trace_call\nINPUT: f(1)\nRESULT:\nline 2: x -> returns 1" in second
    assert "RESULT:\nline 2: x -> returns 1" in conclusion
    assert '"root_cause"' in conclusion
    assert "run_snippet shows it" in second


async def test_the_same_action_again_ends_it() -> None:
    bench = Bench(TRACE, "Tool: trace_call\nInput: f( 1 )", DIAGNOSIS)
    found = await bench.investigate()
    assert (found.trail.ended, bench.used) == ("repeated", ["f(1)"])


async def test_it_has_so_many_steps_and_no_more() -> None:
    looks = [f"TOOL: trace_call\nINPUT: f({number})" for number in range(9)]
    bench = Bench(*looks[:3], DIAGNOSIS)
    found = await bench.investigate(most_steps=3)
    assert (found.trail.ended, len(bench.model.calls)) == ("steps", 4)


async def test_a_reply_that_is_no_action_is_told_and_may_be_followed_by_one() -> None:
    bench = Bench("Let me think.", TRACE, "hm", "hm", DIAGNOSIS)
    found = await bench.investigate()
    assert "Your reply could not be used: there is no line `TOOL:`" in bench.prompts[1]
    assert found.trail.ended == "malformed"
    assert "could not be used" not in bench.prompts[-1]


async def test_a_model_that_never_acts_gives_no_diagnosis() -> None:
    bench = Bench("The bug is in line 2.", repeat_last=True)
    with pytest.raises(MalformedReply, match="never took a step"):
        await bench.investigate()
    assert len(bench.model.calls) == 2
    assert [step.tool for step in bench.steps] == ["", ""]


async def test_a_diagnosis_that_cannot_be_read_is_not_made_up() -> None:
    bench = Bench(TRACE, "TOOL: done", "no idea", repeat_last=True)
    with pytest.raises(MalformedReply, match="no usable DiagnosisReply"):
        await bench.investigate()


async def test_faults_end_it_at_once() -> None:
    with pytest.raises(SandboxBroken):
        await Bench(TRACE, answer="broken").investigate()


@pytest.mark.parametrize(("answer", "shown"), [("", "(nothing)"), ("y" * 50_000, "characters are cut")])
async def test_what_a_tool_says_is_bounded(answer: str, shown: str) -> None:
    bench = Bench(TRACE, "TOOL: done", DIAGNOSIS, answer=answer)
    await bench.investigate()
    assert shown in bench.steps[0].observation
    assert len(bench.steps[0].observation) < MOST_SHOWN + 100


def test_first_look_is_at_the_failing_call() -> None:
    def example(tools: Sequence[str], call: str) -> str:
        from suture.roles.debugger import step_draft

        async def run(_: Action) -> str:
            return ""

        brief = DebugBrief(statement="", files={"m.py": "x"}, facts=[Counterexample(check_id="c", call=call)])
        known = [Tool(name=name, usage="", run=run) for name in tools]
        draft = step_draft(brief, packaged_prompt("debugger"), known, ())
        return draft.texts["example"]

    assert "INPUT: f(3)" in example(TOOLS, "f(3)")
    for tools, call in ((TOOLS, ""), (TOOLS, "f(\n3)"), (("run_snippet",), "f(3)")):
        assert "TOOL: name" in example(tools, call)
