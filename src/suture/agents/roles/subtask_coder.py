"""The planner's coder: does one part of a plan with file tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suture.agents.prompting.fitting import Draft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import advice_part, files_part, task_text
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tools.in_memory_files import InMemoryFiles
from suture.agents.tools.react_loop import (
    Action,
    AgentTool,
    AskDraft,
    OnStep,
    Trail,
    act,
    steps_part,
    tools_text,
)
from suture.core.ledger.kinds import ToolStep
from suture.core.records import Lesson
from suture.errors import MalformedReply
from suture.project.python_source.statements import parses

MOST_STEPS_OF_A_PART = 4


@dataclass(frozen=True, kw_only=True)
class SubtaskBrief:
    """What the coder of one part needs.

    Attributes:
        statement: The whole task, in words or as a stub.
        goal: The part to do now.
        module: The file that the code goes to.
        done: Goals of the parts that are done.
        lessons: What earlier attempts taught.
    """

    statement: str
    goal: str
    module: str
    done: Sequence[str] = ()
    lessons: Sequence[Lesson] = ()


async def work_on(
    brief: SubtaskBrief,
    prompt: Prompt,
    files: InMemoryFiles,
    *,
    ask: AskDraft,
    most_steps: int = MOST_STEPS_OF_A_PART,
    on_step: OnStep | None = None,
) -> Trail:
    """Let a model do one part of a plan, until the module is written; the work is in `files` afterwards.

    A reply that is a block of code and no action is taken as the module's content: that is what small models
    answer to whatever is asked.

    Args:
        brief: The part of the plan that is to be done.
        prompt: The prompt file `subtask_coder`.
        files: The project's files in memory; what the model writes is in `written`.
        ask: Asks for one step.
        most_steps: The most replies of the model.
        on_step: Told of each step.

    Raises:
        MalformedReply: Nothing was written.
        BudgetExceeded: There was no budget for another call.
        ModelError: The model failed.
    """
    before = dict(files.written)
    tools = files.tools()
    trail = await act(
        lambda steps: _draft(brief, prompt, files, tools, steps),
        tools,
        ask,
        most_steps=most_steps,
        on_step=on_step,
        otherwise=lambda text: _as_file(text, brief.module),
        enough=lambda: files.written.get(brief.module) != before.get(brief.module),
    )
    if files.written == before:
        reason = trail.steps[-1].observation if trail.steps else "it was done before it began"
        raise MalformedReply(f"the coder wrote no file: {reason}")
    return trail


def _as_file(text: str, module: str) -> Action | None:
    blocks = [block for block in fenced_blocks(text) if block.may_be_code and block.closed]
    sound = [block for block in blocks if parses(block.code) and block.code.strip()]
    if not sound:
        return None
    chosen = max(sound, key=lambda block: len(block.code))
    return Action(tool="create_file", input=chosen.path or module, code=chosen.code)


def _draft(
    brief: SubtaskBrief,
    prompt: Prompt,
    files: InMemoryFiles,
    tools: Sequence[AgentTool],
    steps: Sequence[ToolStep],
) -> Draft:
    text = files.read(brief.module)
    done = "".join(f"\n- {goal}" for goal in brief.done)
    texts = {
        "task": task_text(brief.statement),
        "goal": brief.goal,
        "done": f"\nThese parts are done:{done}\n" if done else "",
        "module": brief.module,
        "tools": tools_text(tools),
    }
    parts = {
        "files": files_part({brief.module: text} if text and text.strip() else {}),
        "steps": steps_part(steps),
        "lessons": advice_part([lesson.text for lesson in brief.lessons]),
    }
    return Draft(prompt=prompt, template="work", texts=texts, parts=parts)
