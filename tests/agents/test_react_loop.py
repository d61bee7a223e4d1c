"""The ReAct loop: parsing of actions, endings, and the debugger that uses the loop."""

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
FIRST_CALL = "f(1)"
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
def test_untidy_actions_are_parsed(text: str, action: ToolAction) -> None:
    assert read_action(text, TOOLS) == action


@pytest.mark.parametrize(
    "text", ["", "I would look at line 3.", "INPUT: f(1)", "TOOL: rm_rf\nINPUT: /", "TOOL:"]
)
def test_a_reply_without_a_tool_is_not_an_action(text: str) -> None:
    with pytest.raises(MalformedReply, match="run_snippet, trace_call, done"):
        read_action(text, TOOLS)


class DebuggerRun:
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
            raise SandboxBroken("the sandbox broke")
        return self.answer

    async def ask(self, draft: PromptDraft) -> Reply:
        messages = draft.messages(draft.full_counts())
        self.prompts.append(messages[-1].content)
        return await self.model.complete(messages, Sampling())

    async def conclude(self, draft: PromptDraft) -> DiagnosisReply:
        messages = draft.messages(draft.full_counts())
        self.prompts.append(messages[-1].content)
        return await ask_typed(self.model.complete, messages, DiagnosisReply, Sampling())

    async def investigate(self, max_steps: int = 5, call: str = FIRST_CALL) -> Investigation:
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


async def test_the_debugger_uses_tools_and_then_diagnoses() -> None:
    run = DebuggerRun(TRACE, "TOOL: run_snippet\nINPUT: f(2)", "TOOL: done", DIAGNOSIS)

    investigation = await run.investigate()

    assert investigation.diagnosis == Diagnosis(
        root_cause="x is returned", category="wrong_logic", strategy="minimal", confidence=0.7
    )
    assert investigation.trail.ending == "done"
    assert run.used == [FIRST_CALL, "f(5)", "f(2)"]
    assert list(investigation.trail.steps) == run.steps
    steps = [(step.number, step.tool, step.chosen) for step in run.steps]
    assert steps == [(1, "trace_call", False), (2, "trace_call", True), (3, "run_snippet", True)]


async def test_each_step_sees_earlier_results() -> None:
    run = DebuggerRun(TRACE, "TOOL: done", DIAGNOSIS)

    await run.investigate()

    first, second, conclusion = run.prompts
    first_step = "TOOL: trace_call\nINPUT: f(1)\nRESULT:\nline 2: x -> returns 1"
    assert [first_step in prompt for prompt in run.prompts] == [True, True, True]
    assert [first_step.replace("f(1)", "f(5)") in prompt for prompt in run.prompts] == [False, True, True]
    assert "TOOL: done" in first
    assert '"root_cause"' in conclusion
    assert "run_snippet shows it" in second


async def test_a_repeated_action_ends_the_loop() -> None:
    run = DebuggerRun(TRACE, "Tool: trace_call\nInput: f( 5 )", DIAGNOSIS)
    investigation = await run.investigate()
    assert (investigation.trail.ending, run.used) == ("repeated", [FIRST_CALL, "f(5)"])


async def test_repeating_the_first_call_ends_the_loop() -> None:
    run = DebuggerRun(f"TOOL: trace_call\nINPUT: {FIRST_CALL}", DIAGNOSIS)
    assert (await run.investigate()).trail.ending == "repeated"
    assert run.used == [FIRST_CALL]


async def test_the_number_of_steps_is_limited() -> None:
    actions = [f"TOOL: trace_call\nINPUT: f({number})" for number in range(2, 9)]
    run = DebuggerRun(*actions[:3], DIAGNOSIS)
    investigation = await run.investigate(max_steps=3)
    assert (investigation.trail.ending, len(run.model.calls)) == ("steps", 4)


async def test_a_malformed_action_is_reported_to_the_model() -> None:
    run = DebuggerRun("Let me think.", TRACE, "hm", "hm", DIAGNOSIS)
    investigation = await run.investigate()
    assert "Your reply could not be used: there is no line `TOOL:`" in run.prompts[1]
    assert investigation.trail.ending == "malformed"
    assert "could not be used" not in run.prompts[-1]


async def test_a_model_that_never_acts_gives_no_diagnosis() -> None:
    run = DebuggerRun("The bug is in line 2.", repeat_last=True)
    with pytest.raises(MalformedReply, match="never took a step"):
        await run.investigate()
    assert len(run.model.calls) == 2
    assert [step.tool for step in run.steps] == ["trace_call", "", ""]


async def test_an_unreadable_diagnosis_is_malformed() -> None:
    run = DebuggerRun(TRACE, "TOOL: done", "no idea", repeat_last=True)
    with pytest.raises(MalformedReply, match="no usable DiagnosisReply"):
        await run.investigate()


async def test_a_sandbox_fault_is_raised() -> None:
    with pytest.raises(SandboxBroken):
        await DebuggerRun(TRACE, answer="broken").investigate()


@pytest.mark.parametrize(("answer", "expected"), [("", "(nothing)"), ("y" * 50_000, "characters are cut")])
async def test_a_tool_result_is_bounded(answer: str, expected: str) -> None:
    run = DebuggerRun(TRACE, "TOOL: done", DIAGNOSIS, answer=answer)
    await run.investigate()
    assert expected in run.steps[0].observation
    assert len(run.steps[0].observation) < MAX_OBSERVATION_CHARS + 100


@pytest.mark.parametrize("call", ["", "the third row"])
async def test_only_calls_are_traced(call: str) -> None:
    run = DebuggerRun("TOOL: done", DIAGNOSIS)
    investigation = await run.investigate(call=call)
    assert (investigation.trail.steps, run.used) == ((), [])
