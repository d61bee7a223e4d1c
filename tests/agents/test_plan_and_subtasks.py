"""The planner and its coder: plans, files in memory, and merging of files."""

from __future__ import annotations

import pytest

from suture.agents import PromptDraft, packaged_prompt
from suture.agents.roles.advisers import PlanReply, draft_plan_prompt
from suture.agents.roles.subtask_coder import InMemoryFiles, SubtaskBrief, merge_subtask_files, write_subtask
from suture.agents.tools.react_loop import ToolAction, ToolLoopResult
from suture.agents.tuning import MAX_TOOL_FILES
from suture.core.records import Plan, Subtask
from suture.errors import MalformedReply
from suture.models import Reply, Sampling
from suture.models.structured_output import ask_structured as ask_typed
from suture.testing import ScriptedModel

FENCE = "```"
G = "def g():\n    return 1\n"
COUNT = "def count():\n    return 0"


def fence_code(text: str) -> str:
    return f"{FENCE}python\n{text}\n{FENCE}"


def make_plan_prompt() -> PromptDraft:
    return draft_plan_prompt(
        packaged_prompt("planner"),
        statement="Sort words.",
        module="words.py",
        project=["words.py"],
        lessons=["No regex."],
    )


async def test_a_plan_without_subtasks_is_asked_for_again() -> None:
    good = '{"subtasks": [{"goal": "a", "needs": [1, 2]}, {"goal": "b", "needs": [1, 1]}]}'
    model = ScriptedModel(['{"subtasks": []}', good])
    messages = make_plan_prompt().messages(make_plan_prompt().full_counts())
    for part in ("Sort words.", "- words.py", "No regex.", "at most 4"):
        assert part in messages[-1].content

    answer = await ask_typed(model.complete, messages, PlanReply, Sampling())

    assert answer.record() == Plan(subtasks=(Subtask(goal="a"), Subtask(goal="b", needs=(1,))))


def make_files(files: dict[str, str] | None = None) -> InMemoryFiles:
    initial = {"m.py": "import os\n\n\ndef f():\n    return os\n"} if files is None else files
    return InMemoryFiles(initial, lambda path: not path.startswith("test"))


async def use_tool(tools: InMemoryFiles, name: str, initial: str = "", text: str = "") -> str:
    tool = next(tool for tool in tools.tools() if tool.name == name)
    return await tool.run(ToolAction(tool=name, input=initial, code=text))


async def test_files_are_listed_read_and_written_in_memory() -> None:
    files = make_files()

    assert await use_tool(files, "list_files") == "m.py"
    assert "return os" in await use_tool(files, "read_file", "`./m.py`")
    assert await use_tool(files, "read_file", "n.py") == "There is no file 'n.py'."
    assert (
        await use_tool(files, "create_file", "pkg/n.py", "def g():\n    return 1\n")
        == "pkg/n.py is written; it defines g."
    )
    assert await use_tool(files, "list_files") == "m.py\npkg/n.py"
    assert files.written == {"pkg/n.py": G}


def test_the_read_tools_need_files() -> None:
    assert [tool.name for tool in make_files({}).tools()] == ["create_file"]
    assert [tool.name for tool in make_files().tools()] == ["create_file", "read_file", "list_files"]


async def test_earlier_content_of_a_file_is_kept() -> None:
    files = make_files()

    assert (
        await use_tool(files, "create_file", "m.py", "def g():\n    return 1\n")
        == "m.py is written; it defines f, g."
    )
    assert "def f():" in files.written["m.py"]

    await use_tool(files, "create_file", "m.py", "def f():\n    return 2\n")
    assert "return 2" in files.written["m.py"]
    assert "def g():" in files.written["m.py"]


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("../m.py", "x = 1", "may not be written"),
        ("/etc/m.py", "x = 1", "may not be written"),
        ("a/../../m.py", "x = 1", "may not be written"),
        ("test_m.py", "x = 1", "may not be written"),
        ("m.sh", "x = 1", "may not be written"),
        ("", "x = 1", "There was no path"),
        ("n.py", "", "There was no code"),
        ("n.py", "# the code of this part", "There was no code"),
        ("n.py", "def f(:", "does not parse"),
        ("n.py", "x = 1\n" * 9000, "too much"),
    ],
)
async def test_a_forbidden_path_is_reported_to_the_model(path: str, text: str, reason: str) -> None:
    files = make_files()
    assert reason in await use_tool(files, "create_file", path, text)
    assert files.written == {}


async def test_the_number_of_files_is_limited() -> None:
    files = make_files()
    results = [
        await use_tool(files, "create_file", f"n{number}.py", "x = 1") for number in range(MAX_TOOL_FILES + 1)
    ]
    assert "too much" in results[-1]
    assert len(files.written) == MAX_TOOL_FILES


async def write_part(files: InMemoryFiles, *replies: str) -> tuple[ToolLoopResult, list[str]]:
    model = ScriptedModel(replies, repeat_last=True)
    prompts: list[str] = []

    async def ask(draft: PromptDraft) -> Reply:
        messages = draft.messages(draft.full_counts())
        prompts.append(messages[-1].content)
        return await model.complete(messages, Sampling())

    brief = SubtaskBrief(statement="Count.", goal="write count", module="m.py", done=("write read",))
    trail = await write_subtask(brief, packaged_prompt("subtask_coder"), files, ask=ask)
    return trail, prompts


async def test_a_subtask_uses_tools_until_its_module_is_written() -> None:
    files = make_files()
    helper = f"TOOL: create_file\nINPUT: n.py\n{fence_code(COUNT)}"
    create = f"TOOL: create_file\nINPUT: m.py\n{fence_code(COUNT)}"

    trail, prompts = await write_part(files, "TOOL: read_file\nINPUT: m.py", helper, create, "never asked")

    assert trail.ending == "done"
    assert [step.tool for step in trail.steps] == ["read_file", "create_file", "create_file"]
    assert "def count():" in files.written["m.py"]
    assert "write count" in prompts[0]
    assert "- write read" in prompts[0]
    assert "RESULT:\nimport os" in prompts[1]
    assert "n.py is written; it defines count." in prompts[2]


async def test_a_single_code_block_is_the_module() -> None:
    files = make_files({})
    trail, _ = await write_part(files, f"Here it is:\n{fence_code(COUNT)}")
    assert trail.ending == "done"
    assert files.written == {"m.py": "def count():\n    return 0\n"}


async def test_other_written_files_are_kept() -> None:
    files = make_files({})
    trail, _ = await write_part(files, f"TOOL: create_file\nINPUT: n.py\n{fence_code(COUNT)}", "TOOL: done")
    assert trail.ending == "done"
    assert list(files.written) == ["n.py"]


@pytest.mark.parametrize("reply", ["TOOL: done", "I cannot.", "TOOL: list_files", fence_code("def f(:")])
async def test_a_subtask_without_a_file_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedReply, match="wrote no file"):
        await write_part(make_files(), reply)


def test_files_of_parallel_workers_are_merged() -> None:
    base = {"m.py": "def a():\n    return 0\n\n\ndef b():\n    return 0\n"}
    first = {"m.py": base["m.py"].replace("return 0", "return 1", 1), "x.py": "X = 1\n"}
    second = {"m.py": "import os\n\n\n" + base["m.py"].replace("b():\n    return 0", "b():\n    return os")}
    merged = merge_subtask_files(base, [first, second])

    assert merged["x.py"] == "X = 1\n"
    names: dict[str, object] = {}
    exec(merged["m.py"], names)
    assert names["a"]() == 1  # type: ignore[operator]
    assert "return os" in merged["m.py"]


def test_the_later_of_two_versions_wins() -> None:
    versions = [{"m.py": f"def a():\n    return {number}\n"} for number in (1, 2)]
    assert merge_subtask_files({}, [dict(write_part) for write_part in versions]) == versions[1]
