"""The ReAct loop: parsing of actions, endings, and the debugger on top of it."""

from __future__ import annotations

from typing import Any

import pytest

from suture.agents import DiagnosisReply, PromptDraft, packaged_prompt
from suture.agents.roles.coder import RepairBrief
from suture.agents.roles.debugger import Investigation, investigate
from suture.agents.tools.react_loop import AgentTool, ToolAction, read_action
from suture.agents.tuning import MAX_OBSERVATION_CHARS
from suture.core.ledger.kinds import ToolStep
from suture.core.records import Counterexample, Diagnosis
from suture.errors import MalformedReply, SandboxBroken
from suture.models import Reply, Sampling
from suture.models.structured_output import ask_structured as ask_typed
from suture.testing import ScriptedModel

TOOLS = ("trace_call", "run_snippet")
DIAGNOSIS = (
    '{"root_cause": "x is returned", "category": "wrong_logic", "strategy": "minimal", "confidence": 0.7}'
)
TRACE = "TOOL: trace_call\nINPUT: f(5)"
LOOK = "f(1)"
FENCE = "```"


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (TRACE, ToolAction(tool="trace_call", input="f(5)")),
        ("Sure.\n\n**Tool:** `trace_call`\n**Input:** `f(1)`\n", ToolAction(tool="trace_call", input="f(1)")),
        (
            "Action: TRACE_CALL\nAction Input: f(1)\nObservation: 2",
            ToolAction(tool="trace_call", input="f(1)"),
        ),
        ('TOOL: trace_call("f(1)")', ToolAction(tool="trace_call", input="f(1)")),
        ("TOOL: trace_call\nINPUT: f('a', \"b\")", ToolAction(tool="trace_call", input="f('a', \"b\")")),
        (
            "TOOL: run_snippet\nINPUT: for n in (1, 2):\n    print(n)\nRESULT: 1 2",
            ToolAction(tool="run_snippet", input="for n in (1, 2):\n    print(n)"),
        ),
        (f"{TRACE}\nThat should show it.", ToolAction(tool="trace_call", input="f(5)")),
        (f"{TRACE}\nTOOL: done", ToolAction(tool="trace_call", input="f(5)")),
        ("TOOL: done", ToolAction(tool="done")),
        ("TOOL: trace_call", ToolAction(tool="trace_call")),
        (
            f"TOOL: run_snippet\nINPUT:\n{FENCE}python\nx = 1\nprint(x)\n{FENCE}",
            ToolAction(tool="run_snippet", code="x = 1\nprint(x)\n"),
        ),
    ],
)
def test_an_action_is_two_lines_however_untidy(text: str, action: ToolAction) -> None:
    assert read_action(text, TOOLS) == action


@pytest.mark.parametrize(
    "text", ["", "I would look at line 3.", "INPUT: f(1)", "TOOL: rm_rf\nINPUT: /", "TOOL:"]
)
def test_a_reply_without_a_tool_is_not_an_action(text: str) -> None:
    with pytest.raises(MalformedReply, match="run_snippet, trace_call, done"):
        read_action(text, TOOLS)


class Bench:
    """A debugger with a scripted model and a tool that records its inputs."""

    def __init__(
        self, *replies: str | Exception, answer: str = "line 2: x -> returns 1", **more: Any
    ) -> None:
        self.model = ScriptedModel(replies, **more)
        self.prompts: list[str] = []
        self.steps: list[ToolStep] = []
        self.used: list[str] = []
        self.answer = answer
        self.tools = [AgentTool(name=name, usage=f"{name} shows it", run=self.run) for name in TOOLS]

    async def run(self, action: ToolAction) -> str:
        self.used.append(action.content)
        if self.answer == "broken":
            raise SandboxBroken("the wall fell")
        return self.answer

    async def ask(self, draft: PromptDraft) -> Reply:
        messages = draft.messages(draft.full_counts())
        self.prompts.append(messages[-1].content)
        return await self.model.complete(messages, Sampling())

    async def conclude(self, draft: PromptDraft) -> DiagnosisReply:
        messages = draft.messages(draft.full_counts())
        self.prompts.append(messages[-1].content)
        return (await ask_typed(self.model.complete, messages, DiagnosisReply, Sampling())).value

    async def investigate(self, max_steps: int = 5, call: str = LOOK) -> Investigation:
        fact = Counterexample(check_id="c", call=call, expected="2", actual="1")
        brief = RepairBrief(statement="Add one.", files={"m.py": "def f(x):\n    return x\n"}, facts=[fact])
        return await investigate(
            brief,
            packaged_prompt("debugger"),
            self.tools,
            ask=self.ask,
            conclude=self.conclude,
            max_steps=max_steps,
            on_step=self.steps.append,
        )


async def test_the_debugger_uses_tools_and_then_concludes() -> None:
    bench = Bench(TRACE, "TOOL: run_snippet\nINPUT: f(2)", "TOOL: done", DIAGNOSIS)
    found = await bench.investigate()
    assert found.diagnosis == Diagnosis(
        root_cause="x is returned", category="wrong_logic", strategy="minimal", confidence=0.7
    )
    assert found.trail.ending == "done"
    assert bench.used == [LOOK, "f(5)", "f(2)"]
    assert list(found.trail.steps) == bench.steps
    told = [(step.number, step.tool, step.chosen) for step in bench.steps]
    assert told == [(1, "trace_call", False), (2, "trace_call", True), (3, "run_snippet", True)]


async def test_each_step_sees_earlier_results() -> None:
    bench = Bench(TRACE, "TOOL: done", DIAGNOSIS)
    await bench.investigate()
    first, second, conclusion = bench.prompts
    looked = "TOOL: trace_call\nINPUT: f(1)\nRESULT:\nline 2: x -> returns 1"
    assert [looked in prompt for prompt in bench.prompts] == [True, True, True]
    assert [looked.replace("f(1)", "f(5)") in prompt for prompt in bench.prompts] == [False, True, True]
    assert "TOOL: done" in first
    assert '"root_cause"' in conclusion
    assert "run_snippet shows it" in second


async def test_the_same_action_again_ends_it() -> None:
    bench = Bench(TRACE, "Tool: trace_call\nInput: f( 5 )", DIAGNOSIS)
    found = await bench.investigate()
    assert (found.trail.ending, bench.used) == ("repeated", [LOOK, "f(5)"])


async def test_repeated_actions_end_the_loop() -> None:
    bench = Bench(f"TOOL: trace_call\nINPUT: {LOOK}", DIAGNOSIS)
    assert (await bench.investigate()).trail.ending == "repeated"
    assert bench.used == [LOOK]


async def test_it_has_so_many_steps_and_no_more() -> None:
    looks = [f"TOOL: trace_call\nINPUT: f({number})" for number in range(2, 9)]
    bench = Bench(*looks[:3], DIAGNOSIS)
    found = await bench.investigate(max_steps=3)
    assert (found.trail.ending, len(bench.model.calls)) == ("steps", 4)


async def test_a_malformed_action_is_reported_to_the_model() -> None:
    bench = Bench("Let me think.", TRACE, "hm", "hm", DIAGNOSIS)
    found = await bench.investigate()
    assert "Your reply could not be used: there is no line `TOOL:`" in bench.prompts[1]
    assert found.trail.ending == "malformed"
    assert "could not be used" not in bench.prompts[-1]


async def test_a_model_that_never_acts_gives_no_diagnosis() -> None:
    bench = Bench("The bug is in line 2.", repeat_last=True)
    with pytest.raises(MalformedReply, match="never took a step"):
        await bench.investigate()
    assert len(bench.model.calls) == 2
    assert [step.tool for step in bench.steps] == ["trace_call", "", ""]


async def test_a_diagnosis_that_cannot_be_read_is_not_made_up() -> None:
    bench = Bench(TRACE, "TOOL: done", "no idea", repeat_last=True)
    with pytest.raises(MalformedReply, match="no usable DiagnosisReply"):
        await bench.investigate()


async def test_faults_end_it_at_once() -> None:
    with pytest.raises(SandboxBroken):
        await Bench(TRACE, answer="broken").investigate()


@pytest.mark.parametrize(("answer", "shown"), [("", "(nothing)"), ("y" * 50_000, "characters are cut")])
async def test_a_tool_result_is_bounded(answer: str, shown: str) -> None:
    bench = Bench(TRACE, "TOOL: done", DIAGNOSIS, answer=answer)
    await bench.investigate()
    assert shown in bench.steps[0].observation
    assert len(bench.steps[0].observation) < MAX_OBSERVATION_CHARS + 100


@pytest.mark.parametrize("call", ["", "the third row"])
async def test_only_calls_are_traced(call: str) -> None:
    bench = Bench("TOOL: done", DIAGNOSIS)
    found = await bench.investigate(call=call)
    assert (found.trail.steps, bench.used) == ((), [])
