"""The planner's coder: writes one part of a plan with tools for files, which stay in memory until judged."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import advice_part, files_part, render_task
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tools.react_loop import (
    AgentTool,
    AskDraft,
    OnStep,
    ToolAction,
    ToolLoopResult,
    render_tools,
    run_tool_loop,
    steps_part,
)
from suture.agents.tuning import MAX_SUBTASK_STEPS, MAX_TOOL_FILE_CHARS, MAX_TOOL_FILES
from suture.core.ledger.kinds import ToolStep
from suture.errors import MalformedReply
from suture.project.python_source.module_definitions import preserves_definitions, top_level_names
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.splicing import splice
from suture.project.python_source.statement_edits import is_valid_python, remove_statements


class InMemoryFiles:
    """The files of a project, and what a model has written over them.

    Args:
        may_write: Whether a path may be written; tests may not, for example.
    """

    def __init__(self, files: Mapping[str, str], may_write: Callable[[str], bool]) -> None:
        self._files = dict(files)
        self._may_write = may_write
        self.written: dict[str, str] = {}
        """What was written, path -> text."""

    def tools(self) -> tuple[AgentTool, ...]:
        """Return the tools `create_file`, and `read_file` and `list_files` if there are files."""
        create = AgentTool(
            name="create_file",
            usage="the input is a path, and below it a ```python block with the content of the file",
            run=self._create_file,
        )
        read = AgentTool(
            name="read_file",
            usage="the input is a path; shows the content of the file",
            run=self._read_file,
        )
        list_all = AgentTool(
            name="list_files", usage="shows the paths of all files; no input", run=self._list_files
        )
        return (create, read, list_all) if self._files or self.written else (create,)

    def read(self, path: str) -> str | None:
        """Return the current content of a file, or `None`."""
        return self.written.get(path, self._files.get(path))

    def write(self, path: str, code: str) -> str:
        """Write a file; definitions that the code lacks stay. Return why it was refused, or an empty string."""
        path = posixpath.normpath(path.strip())
        is_outside = not path or path.startswith(("/", "..")) or "\\" in path or "\0" in path
        if is_outside or not path.endswith(".py") or not self._may_write(path):
            return f"{path!r} may not be written."
        if len(code) > MAX_TOOL_FILE_CHARS or len(self.written.keys() | {path}) > MAX_TOOL_FILES:
            return f"That is too much for {MAX_TOOL_FILES} files of {MAX_TOOL_FILE_CHARS} characters."
        tree = parse_module(code)
        if tree is None:
            return "The code is not Python: it does not parse. Nothing was written."
        if not tree.body:
            return "There was no code."
        old = self.read(path) or ""
        is_complete = not old.strip() or parse_module(old) is None or preserves_definitions(code, old)
        merged = code if is_complete else splice(old, code)
        if merged is None:
            return "The file is there already, and this leaves out parts of it. Write the whole file."
        self.written[path] = merged
        return ""

    async def _create_file(self, action: ToolAction) -> str:
        path = action.input.strip("`'\" ")
        if not path:
            return "There was no path."
        if refusal := self.write(path, action.code):
            return refusal
        names = ", ".join(sorted(top_level_names(self.read(posixpath.normpath(path)) or "")))
        return f"{path} is written; it defines {names or 'nothing'}."

    async def _read_file(self, action: ToolAction) -> str:
        path = posixpath.normpath(action.input.strip("`'\" ") or ".")
        text = self.read(path)
        return f"There is no file {path!r}." if text is None else text or "(it is empty)"

    async def _list_files(self, _: ToolAction) -> str:
        return "\n".join(sorted(self._files.keys() | self.written.keys())) or "There are no files."


def merge_subtask_files(base: Mapping[str, str], written: list[Mapping[str, str]]) -> dict[str, str]:
    """Merge what subtasks wrote from the same base (path -> text), in the order of the plan.

    Of two versions of a definition the later one wins. A file that cannot be merged replaces earlier versions.
    """
    merged: dict[str, str] = {}
    for files in written:
        for path, text in files.items():
            earlier = merged.get(path)
            spliced = (
                splice(earlier, _changed_part(base.get(path, ""), text)) if earlier is not None else None
            )
            merged[path] = text if spliced is None else spliced
    return merged


def _changed_part(base: str, text: str) -> str:
    """Return the statements of a module that differ from those of the base, and all of its imports."""
    old, new = parse_module(base), parse_module(text)
    if old is None or new is None:
        return text
    old_statements = {ast.dump(node) for node in old.body}
    unchanged = [
        node
        for node in new.body
        if ast.dump(node) in old_statements and not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return remove_statements(text, new, unchanged)


@dataclass(frozen=True, kw_only=True)
class SubtaskBrief:
    """What the coder of one part needs.

    Attributes:
        done: Goals of the finished parts.
        lessons: Lessons of earlier attempts.
    """

    statement: str
    goal: str
    module: str
    done: Sequence[str] = ()
    lessons: Sequence[str] = ()


async def write_subtask(
    brief: SubtaskBrief,
    prompt: Prompt,
    files: InMemoryFiles,
    *,
    ask: AskDraft,
    on_step: OnStep | None = None,
) -> ToolLoopResult:
    """Let a model write one part of a plan; the result is in `files`.

    A reply that is just a block of code is taken as the module's content, because small models answer anything that
    way.

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
        "lessons": advice_part(brief.lessons),
    }
    return PromptDraft(prompt=prompt, template="work", texts=texts, parts=parts)
