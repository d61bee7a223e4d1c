"""One conversation with a capable model: patch, new facts, next patch. Only its replies are scripted."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from project_files import write_files
from suture.api import HealOptions, heal, replay, resume
from suture.core.ledger import Event, RunFolder, find_run, read_ledger, select_events
from suture.core.ledger.kinds import AgentStepped, CandidateChecked, ModelCalled, MovesDecided
from suture.core.records import Result
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    LoopSettings,
    RepairSettings,
    SandboxSettings,
    Settings,
)
from suture.core.settings.schema import ModelSettings, ProfileSettings
from suture.errors import ModelTimeout, ReplyLost
from suture.interfaces.narrative.event_text import render_payload
from suture.models import Message, Reply, ToolCall
from suture.testing import ScriptedModel

FILES = {
    "calc.py": """def add(a, b):
    return a - b


def double(n):
    return n + n + 1


def negate(n):
    return -n
""",
    "tests/__init__.py": "",
    "tests/test_calc.py": """import unittest

from calc import add, double, negate


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_double(self):
        self.assertEqual(double(4), 8)

    def test_negate(self):
        self.assertEqual(negate(4), -4)
""",
}


FIXED = FILES["calc.py"].replace("a - b", "a + b").replace("n + n + 1", "n + n")


def block(old: str, new: str, path: str = "calc.py") -> str:
    return f"{path}\n<<<<<<< SEARCH\n    {old}\n=======\n    {new}\n>>>>>>> REPLACE\n"


ADD = block("return a - b", "return a + b")
DOUBLE = block("return n + n + 1", "return n + n")
DOUBLE_BREAKS_NEGATE = DOUBLE + block("return -n", "return n")


def call(name: str, position: int, /, **arguments: str) -> ToolCall:
    return ToolCall(id=f"call-{position}", name=name, arguments=arguments)


def calls(*tool_calls: ToolCall, text: str = "") -> Reply:
    return Reply(text=text, tool_calls=tool_calls, prompt_tokens=50, completion_tokens=20)


@dataclass(frozen=True)
class Conversation:
    """A run with scripted replies, and what it recorded."""

    result: Result
    folder: RunFolder
    model: ScriptedModel

    @property
    def events(self) -> tuple[Event, ...]:
        return read_ledger(self.folder.ledger_path).events

    @property
    def steps(self) -> list[AgentStepped]:
        return [step for _, step in select_events(self.events, AgentStepped)]

    def prompt(self, number: int) -> tuple[Message, ...]:
        """Return the messages of a call, from 1."""
        return self.model.calls[number - 1].messages

    @property
    def repaired(self) -> str:
        assert self.result.candidate is not None
        return self.result.candidate.files["calc.py"]


def make_settings(
    settings: Settings, *, tools: bool = True, recipe: str = "adaptive", attempts: int = 12
) -> Settings:
    return settings.model_copy(
        update={
            "model": ModelSettings(profile=ProfileSettings(capable=True, tools=tools)),
            "loop": LoopSettings(recipe=recipe),
            "repair": RepairSettings(enabled=False),
            "certification": CertificationSettings(seconds=0, mutants=0),
            "sandbox": SandboxSettings(test_timeout_s=5),
            "budget": BudgetSettings(attempts=attempts, seconds=200, tokens=2_000_000),
        }
    )


async def talk(
    replies: Sequence[str | Exception | Reply],
    tmp_path: Path,
    settings: Settings,
    *,
    tools: bool = True,
    attempts: int = 12,
) -> Conversation:
    project = write_files(tmp_path / "project", FILES)
    run_settings = make_settings(settings, tools=tools, attempts=attempts)
    model = ScriptedModel(replies)
    options = HealOptions(test=BARE_PYTEST, settings=run_settings, model=model)
    result = await heal(project, options)
    return Conversation(result, find_run(settings.paths.home, result.run_id), model)


async def test_a_right_first_patch_is_one_call_and_one_run_of_the_tests(
    tmp_path: Path, settings: Settings
) -> None:
    run = await talk([f"Both operators are wrong.\n\n{ADD}{DOUBLE}"], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert (run.result.spend.model_calls, run.result.spend.attempts) == (1, 1)
    (step,) = run.steps
    assert (step.patch, step.passed, step.failed, step.ending) == (1, 3, 0, "passed")
    checked = [event.label for _, event in select_events(run.events, CandidateChecked)]
    assert checked == ["the code as it is", "patch 1"]
    moves = [move.kind for _, event in select_events(run.events, MovesDecided) for move in event.moves]
    assert moves == ["agent", "stop"]


async def test_a_near_miss_is_continued_with_its_facts(tmp_path: Path, settings: Settings) -> None:
    run = await talk([ADD, DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert "return a + b" in run.repaired
    assert "return n + n\n" in run.repaired
    assert [(step.passed, step.failed) for step in run.steps] == [(2, 1), (3, 0)]
    first, second = run.prompt(1), run.prompt(2)
    assert second[: len(first)] == first, "the beginning of a prompt changed, so no cache of it can be used"
    assert [message.role for message in second[len(first) :]] == ["assistant", "user"]
    assert "test_double" in second[-1].content
    assert "test_add" not in second[-1].content
    assert run.result.spend.attempts == 2


async def test_an_edit_that_does_not_apply_is_answered_and_costs_no_attempt(
    tmp_path: Path, settings: Settings
) -> None:
    run = await talk([block("return a-b # wrong", "return a + b"), ADD + DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert run.steps[0].problem == "not_applied"
    assert "return a - b" in run.prompt(2)[-1].content, "the nearest lines are missing"
    assert (run.result.spend.model_calls, run.result.spend.attempts) == (2, 1)


async def test_the_record_says_how_each_patch_did(tmp_path: Path, settings: Settings) -> None:
    run = await talk([block("no such line", "x"), ADD, DOUBLE], tmp_path, settings)
    assert [render_payload(step) for step in run.steps] == [
        "reply 1: an edit does not apply",
        "reply 2: patch 1: 2 of 3 tests pass",
        "reply 3: patch 2: 3 of 3 tests pass",
    ]


async def test_the_calls_of_a_reply_are_all_carried_out_and_answered_in_order(
    tmp_path: Path, settings: Settings
) -> None:
    looks = calls(
        call("read_file", 1, path="calc.py", lines="1-2"),
        call("search", 2, text="return n"),
        call("edit", 3, path="calc.py", old_str="a - b", new_str="a + b"),
        call("shell", 4, command="grep -c return calc.py"),
    )

    run = await talk([looks, DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    answers = run.prompt(2)[-4:]
    assert [(message.role, message.tool_call_id) for message in answers] == [
        ("tool", f"call-{number}") for number in range(1, 5)
    ]
    assert answers[0].content == "1  def add(a, b):\n2      return a - b"
    assert "calc.py:6: return n + n + 1" in answers[1].content
    assert answers[2].content == "calc.py is changed."
    assert answers[3].content.startswith("(exit code 0)\n3\n\nPatch 1: 2 of 3 tests pass")
    assert run.prompt(2)[-5].tool_calls == looks.tool_calls
    assert run.steps[0].tools == ("read_file", "search", "edit", "shell")


async def test_a_worse_patch_is_put_back(tmp_path: Path, settings: Settings) -> None:
    run = await talk([ADD, DOUBLE_BREAKS_NEGATE.replace("n + n\n", "n\n"), DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert [(step.passed, step.regressed) for step in run.steps] == [(2, 0), (1, 1), (3, 0)]
    assert "return -n" in run.repaired
    assert "negate(4)" in run.prompt(3)[-1].content
    assert "the files are again as they were after patch 1" in run.prompt(3)[-1].content


async def test_a_model_may_go_on_from_a_worse_patch(tmp_path: Path, settings: Settings) -> None:
    run = await talk([ADD, DOUBLE_BREAKS_NEGATE, block("return n", "return -n")], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert [step.passed for step in run.steps] == [2, 2, 3]


async def test_parts_without_an_effect_of_their_own_add_up(tmp_path: Path, settings: Settings) -> None:
    helper = "TEN = 10\n\n\ndef add(a, b):\n    return a - b\n"
    first = calls(
        call("edit", 1, path="calc.py", old_str="def add(a, b):\n    return a - b\n", new_str=helper)
    )

    run = await talk([first, ADD + DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert [step.passed for step in run.steps] == [1, 3]
    assert "The files keep your changes so far" in run.prompt(2)[-1].content


async def test_a_change_of_the_code_as_it_was_is_understood(tmp_path: Path, settings: Settings) -> None:
    run = await talk([block("return n + n + 1", "return n + n + 3"), ADD + DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert run.repaired == FIXED
    assert len(run.model.calls) == 2


async def test_wrong_calls_are_answered_with_what_is_wrong(tmp_path: Path, settings: Settings) -> None:
    wrong = calls(
        call("browse", 1, url="the web"),
        ToolCall(id="call-2", name="search", undecoded='{"text": "a'),
        call("read_file", 3, file="calc.py"),
        call("read_file", 4, path="../../etc/passwd"),
    )

    run = await talk([wrong, ADD + DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    unknown, undecoded, misnamed, outside = (message.content for message in run.prompt(2)[-4:])
    assert unknown.startswith("ToolError: there is no tool 'browse', only read_file, search, ")
    assert "not a JSON object: Unterminated string" in undecoded
    assert "'path' is missing; there is no 'file'" in misnamed
    assert outside.startswith("ReadError: there is no file '../../etc/passwd'")


async def test_a_part_that_was_applied_is_tested_when_the_model_asks_for_it(
    tmp_path: Path, settings: Settings
) -> None:
    half = calls(
        call("edit", 1, path="calc.py", old_str="a - b", new_str="a + b"),
        call("edit", 2, path="calc.py", old_str="no such text", new_str=""),
    )

    run = await talk([half, calls(call("run_tests", 1)), DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert [(step.problem, step.passed) for step in run.steps] == [("not_applied", 0), ("", 2), ("", 3)]
    assert "The tests have not run yet" in run.prompt(2)[-1].content


async def test_after_a_cut_reply_the_next_may_be_longer(tmp_path: Path, settings: Settings) -> None:
    cut = Reply(text=f"I begin.\n\n{ADD}", finish="length", prompt_tokens=50, completion_tokens=20)

    run = await talk([cut, ADD + DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    first, second = (call.sampling.max_tokens for call in run.model.calls)
    assert second > first
    assert [step.problem for step in run.steps] == ["cut", ""]
    assert run.result.spend.attempts == 1


async def test_a_refusal_ends_the_conversation_by_name(tmp_path: Path, settings: Settings) -> None:
    refusal = Reply(text="I cannot help with that.", finish="refusal", prompt_tokens=50, completion_tokens=20)
    run = await talk([refusal], tmp_path, settings)
    assert run.result.reason.code == "no_answer"
    assert "refused to answer" in run.result.reason.detail
    assert len(run.model.calls) == 1


async def test_replies_without_a_change_end_the_conversation(tmp_path: Path, settings: Settings) -> None:
    run = await talk(["Sorry."] * 4, tmp_path, settings)
    assert run.result.outcome == "not_healed"
    assert "changed nothing in 4 step(s): unusable" in run.result.reason.detail


async def test_a_stalled_conversation_is_followed_by_a_new_one_from_the_best_patch(
    tmp_path: Path, settings: Settings
) -> None:
    useless = [block(f"return n + n + {n}", f"return n + n + {n + 1}") for n in range(1, 7)]

    run = await talk([ADD, *useless, DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert run.steps[6].ending == "stalled"
    assert "return a + b" in run.repaired
    new = run.prompt(8)
    assert len(new) == 2
    assert "test_add" not in new[1].content


async def test_the_same_patch_again_is_not_tested_again(tmp_path: Path, settings: Settings) -> None:
    worse = DOUBLE_BREAKS_NEGATE.replace("n + n\n", "n\n")

    run = await talk([ADD, worse, worse, DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    assert run.steps[2].problem == "same_patch"
    assert "Patch 2: 1 of 3 tests pass" in run.prompt(4)[-1].content
    assert len(list(select_events(run.events, CandidateChecked))) == 4


async def test_the_best_patch_is_kept_when_the_attempts_are_used_up(
    tmp_path: Path, settings: Settings
) -> None:
    run = await talk([ADD, DOUBLE_BREAKS_NEGATE.replace("n + n\n", "n\n")], tmp_path, settings, attempts=2)

    assert run.result.outcome == "budget_exhausted"
    assert run.repaired == FILES["calc.py"].replace("a - b", "a + b")
    assert run.result.spend.attempts == 2


async def test_a_failing_model_does_not_lose_the_best_patch(tmp_path: Path, settings: Settings) -> None:
    run = await talk([ADD, ModelTimeout("no reply in time")], tmp_path, settings)
    assert run.repaired == FILES["calc.py"].replace("a - b", "a + b")


async def test_a_lost_reply_after_a_patch_is_asked_for_again_in_the_same_conversation(
    tmp_path: Path, settings: Settings
) -> None:
    run = await talk([ADD, ReplyLost("the connection was closed"), DOUBLE], tmp_path, settings)
    assert run.result.outcome == "healed", run.result.reason
    assert run.prompt(3) == run.prompt(2)
    assert "Patch 1" in run.prompt(3)[-1].content
    replayed = await replay(run.result.run_id, settings=settings)
    assert replayed.same, replayed.difference


async def test_a_model_without_native_tools_calls_them_in_its_text(
    tmp_path: Path, settings: Settings
) -> None:
    look = 'I look.\nTOOL: read_file {"path": "calc.py"}\nTOOL: search {"text": "negate"}'

    run = await talk([look, ADD + DOUBLE], tmp_path, settings, tools=False)

    assert run.result.outcome == "healed", run.result.reason
    assert run.model.calls[0].sampling.tools == ()
    assert "TOOL: read_file" in run.prompt(1)[0].content
    answer = run.prompt(2)[-1]
    assert answer.role == "user"
    assert "Result of read_file:\n 1  def add" in answer.content
    assert "Result of search:\ncalc.py:9: def negate(n):" in answer.content


async def test_tests_cannot_be_changed(tmp_path: Path, settings: Settings) -> None:
    cheats = calls(
        call("edit", 1, path="tests/test_calc.py", old_str="5)", new_str="-1)"),
        call("edit", 2, path="conftest.py", new_str="import os"),
        call("shell", 3, command="sed -i 's/8)/9)/' tests/test_calc.py; rm calc.py"),
        text=block("self.assertEqual(add(2, 3), 5)", "pass", "tests/test_calc.py"),
    )

    run = await talk([cheats, ADD + DOUBLE], tmp_path, settings)

    assert run.result.outcome == "healed", run.result.reason
    first, second, third = (message.content for message in run.prompt(2)[-3:])
    assert first == "EditError: tests/test_calc.py may not be changed."
    assert second == "EditError: conftest.py may not be changed."
    assert "put back: tests/test_calc.py may not be changed" in third
    assert "put back: nothing can be deleted: calc.py" in third
    assert run.steps[0].patch == 0


async def test_a_replay_gives_the_same_run_without_a_model(tmp_path: Path, settings: Settings) -> None:
    run = await talk(STORY, tmp_path, settings)
    assert run.result.outcome == "healed", run.result.reason

    replayed = await replay(run.result.run_id, settings=settings)

    assert replayed.same, replayed.difference


STORY: list[str | Exception | Reply] = [
    calls(call("read_file", 1, path="calc.py"), text="I look."),
    ADD,
    block("no such line", "x"),
    DOUBLE_BREAKS_NEGATE.replace("n + n\n", "n\n"),
    DOUBLE,
]
"""A tool, a near miss, an edit that does not apply, a worse patch, and the right one."""


@pytest.mark.parametrize(
    "every", [pytest.param(7, id="some points"), pytest.param(1, id="all points", marks=pytest.mark.heavy)]
)
async def test_a_killed_conversation_resumes_and_pays_for_no_reply_twice(
    every: int, tmp_path: Path, settings: Settings
) -> None:
    """A kill leaves the ledger up to that point and the replies that had arrived."""
    run = await talk(STORY, tmp_path, settings)
    lines = run.folder.ledger_path.read_text().splitlines(keepends=True)
    events = run.events
    backup = tmp_path / "backup"
    shutil.copytree(settings.paths.home, backup)
    kill_points = [
        number
        for number, event in enumerate(events)
        if isinstance(event.payload, AgentStepped | ModelCalled | CandidateChecked)
    ]
    for point in kill_points[1::every]:
        shutil.rmtree(settings.paths.home)
        shutil.copytree(backup, settings.paths.home)
        run.folder.ledger_path.write_text("".join(lines[: point + 1]))
        for checkpoint in settings.paths.home.glob("*checkpoint*"):
            checkpoint.unlink()
        paid = [called.call for _, called in select_events(events[: point + 1], ModelCalled)]
        for reply in run.folder.replies_path.glob("*.json"):
            if reply.stem not in paid:
                reply.unlink()
        remaining = ScriptedModel(STORY[len(paid) :])

        resumed = await resume(run.result.run_id, settings=settings, model=remaining)

        assert (resumed.outcome, resumed.diff) == ("healed", run.result.diff), resumed.reason
        assert len(remaining.calls) == len(STORY) - len(paid)
        numbers = [
            step.number for _, step in select_events(read_ledger(run.folder.ledger_path).events, AgentStepped)
        ]
        assert numbers == [1, 2, 3, 4, 5]
