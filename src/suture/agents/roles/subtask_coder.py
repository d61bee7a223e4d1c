"""The planner's coder: writes one part of a plan with file tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import advice_part, files_part, render_task
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tools.in_memory_files import InMemoryFiles
from suture.agents.tools.react_loop import (
    AgentTool,
    AskDraft,
    OnStep,
    ToolAction,
    ToolTrail,
    render_tools,
    run_tool_loop,
    steps_part,
)
from suture.agents.tuning import MAX_SUBTASK_STEPS
from suture.core.ledger.kinds import ToolStep
from suture.core.records import Lesson
from suture.errors import MalformedReply
from suture.project.python_source.statements import is_valid_python


@dataclass(frozen=True, kw_only=True)
class SubtaskBrief:
    """What the coder of one part needs.

    Attributes:
        module: The file for the code.
        done: Goals of the finished parts.
        lessons: Lessons of earlier attempts.
    """

    statement: str
    goal: str
    module: str
    done: Sequence[str] = ()
    lessons: Sequence[Lesson] = ()


async def write_subtask(
    brief: SubtaskBrief,
    prompt: Prompt,
    files: InMemoryFiles,
    *,
    ask: AskDraft,
    on_step: OnStep | None = None,
) -> ToolTrail:
    """Let a model write one part of a plan; the result is in `files`.

    A reply that is just a block of code is taken as the module's content, because small models answer so to
    anything.

    Args:
        files: The project's files in memory; the part is done when the model has written the brief's module.
        ask: Asks the model for one step.

    Raises:
        MalformedReply: Nothing was written.
    """
    before = dict(files.written)
    tools = files.tools()
    trail = await run_tool_loop(
        lambda steps: _draft(brief, prompt, files, tools, steps),
        tools,
        ask,
        max_steps=MAX_SUBTASK_STEPS,
        on_step=on_step,
        fallback=lambda text: _infer_file(text, brief.module),
        is_done=lambda: files.written.get(brief.module) != before.get(brief.module),
    )
    if files.written == before:
        reason = trail.steps[-1].observation if trail.steps else "it was done before it began"
        raise MalformedReply(f"the coder wrote no file: {reason}")
    return trail


def _infer_file(text: str, module: str) -> ToolAction | None:
    """Return the action that writes the longest block of Python in a reply; `None` if there is no block."""
    blocks = [block for block in fenced_blocks(text) if block.may_be_code and block.is_closed]
    valid = [block for block in blocks if is_valid_python(block.code) and block.code.strip()]
    if not valid:
        return None
    longest = max(valid, key=lambda block: len(block.code))
    return ToolAction(tool="create_file", input=longest.path or module, code=longest.code)


def _draft(
    brief: SubtaskBrief,
    prompt: Prompt,
    files: InMemoryFiles,
    tools: Sequence[AgentTool],
    steps: Sequence[ToolStep],
) -> PromptDraft:
    text = files.read(brief.module)
    done = "".join(f"\n- {goal}" for goal in brief.done)
    texts = {
        "task": render_task(brief.statement),
        "goal": brief.goal,
        "done": f"\nThese parts are done:{done}\n" if done else "",
        "module": brief.module,
        "tools": render_tools(tools),
    }
    parts = {
        "files": files_part({brief.module: text} if text and text.strip() else {}),
        "steps": steps_part(steps),
        "lessons": advice_part([lesson.text for lesson in brief.lessons]),
    }
    return PromptDraft(prompt=prompt, template="work", texts=texts, parts=parts)
