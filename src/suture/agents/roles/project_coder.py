"""The coder of several files in any language: its prompt, and reading its reply.

A reply is read as text, file by file. Nothing here parses the code: whether it builds, the verdict says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    advice_part,
    attempts_part,
    facts_part,
    output_part,
    refused_part,
)
from suture.agents.replies.edit_blocks import apply_edits, may_create, split_edits
from suture.agents.replies.fenced_blocks import Block, fenced_blocks
from suture.agents.replies.written_files import SHELL, label_of
from suture.agents.roles.coder import RepairBrief
from suture.core.records import ProjectKind, Task
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES, filled
from suture.project.python_source.parsing import bounded

LONGEST_FILE = 200_000
MOST_FILES = 40
CONTRACTS: Mapping[ProjectKind, str] = {
    "web_app": (
        "`{start}` starts the server. It listens on 127.0.0.1 at the port that the environment variable PORT "
        "names (8000 without it), and answers GET / with a status below 500."
    ),
    "data_pipeline": (
        "`{start} INPUT OUTPUT` reads the file INPUT, which may have gaps, and writes its result to the file "
        "OUTPUT. Where INPUT cannot be read it says so and ends with exit code 1."
    ),
    "cli_tool": (
        "`{start}` runs it. `--help` prints how it is used and ends with exit code 0. Without arguments it "
        "prints something and ends; it never waits for input that nobody announced."
    ),
    "library": "`{entry}` offers the public names; it prints nothing and starts nothing.",
}


@dataclass(frozen=True, kw_only=True)
class ProjectBrief(RepairBrief):
    """What the coder needs to write files or to mend those that are written.

    Attributes:
        rules: How the code is laid out and started, and what else holds of it.
        entry: The file that must be there; empty where all of them are there already.
        tests: Source of the user's tests, which the coder may see.
        mends: Whether `files` are a candidate's own that fail; else they are what is there already.
    """

    rules: str
    entry: str = ""
    tests: str = ""
    mends: bool = False


def rules_of(task: Task) -> str:
    """How the code of a task is laid out and started, in words for whoever writes it."""
    facts = LANGUAGES[task.language]
    layout, project = facts.layout, task.project
    if project is not None and project.kind is None:
        own = "Keep to the project's own style, and leave its tests alone."
        return f"It is {facts.label}. {own} {layout.adding}"
    if project is None or project.kind is None:
        named = f", with `{task.entry_point}`" if task.entry_point else ""
        rule = layout.single.format(name=task.entry_point or "name")
        return f"Write it in {facts.label} into the file `{task.module}`{named}. {rule}"
    start = " ".join(filled(layout.by_hand, project.name, task.module))
    contract = CONTRACTS[project.kind].format(start=start, entry=task.module)
    style = layout.style.format(name=project.name)
    done = " Its manifest, README and .gitignore are there already." if project.is_new else ""
    done = done if project.is_new else f" {layout.adding}"
    return (
        f"It is {facts.label}. {contract} {style}{done} Write the code alone, beginning with "
        f"`{task.module}`, and no tests."
    )


def project_draft(brief: ProjectBrief, prompt: Prompt) -> Draft:
    """The coder's prompt, before it is cut to the room there is."""
    shown = [f"### {path}\n{_fenced(path, text)}" for path, text in brief.files.items()]
    texts = {"task": brief.statement.strip(), "rules": brief.rules}
    parts = {
        "tests": PromptPart(
            pieces=brief.tests.strip().splitlines(),
            before="\nIt must pass these tests:\n\n```\n",
            after="\n```\n",
        ),
        "files": PromptPart(
            pieces=shown, joint="\n\n", before="" if brief.mends else "\nThese files are there:\n\n"
        ),
        "refused": refused_part(brief.refused),
        "advice": advice_part(brief.advice),
    }
    if not brief.mends:
        return Draft(prompt=prompt, template="write", texts=texts, parts=parts)
    parts |= {
        "facts": facts_part(brief.facts),
        "output": output_part(brief.output) if not brief.facts else PromptPart(pieces=()),
        "history": attempts_part(brief.history),
    }
    how = prompt.render(brief.strategy)
    return Draft(prompt=prompt, template="repair", texts={**texts, "how": how}, parts=parts)


def _fenced(path: str, text: str) -> str:
    fence = next((f.fence for f in LANGUAGES.values() if path.endswith(f.endings)), path.rpartition(".")[2])
    return f"```{fence}\n{text.strip()}\n```"


@bounded
def files_from_project_reply(reply: Reply, brief: ProjectBrief) -> dict[str, str]:
    """The files that a reply asks to write, path -> text.

    Raises:
        MalformedReply: There is no file in it, it was cut short, or it lacks the file that all begins with.
        EditDoesNotApply: A search/replace block in it has no one place.
    """
    edits, text = split_edits(reply.text)
    files = dict(apply_edits(edits, brief.files, brief.project))
    blocks = fenced_blocks(text)
    if reply.finish == "length" and any(not block.closed for block in blocks):
        raise MalformedReply(
            "the reply was cut short before its last file was complete", remedy="raise model.max_tokens"
        )
    named = {block.path: block.code for block in blocks if _is_file(block)}
    files = {**{path: code for path, code in named.items() if path}, **files}
    entry = brief.entry
    wanted = entry or next(iter(brief.files), "")
    if not files and wanted:
        code = [block for block in blocks if block.may_be_code and block.code.strip()]
        files = {wanted: max(code, key=lambda block: len(block.code)).code} if code else {}
    files = _under_root(files, entry)
    if entry and entry not in files and not brief.mends:
        sources = [path for path in files if path.rpartition(".")[2] == entry.rpartition(".")[2]]
        if len(sources) == 1:  # all of the program in one file, by another name
            files[entry] = files.pop(sources[0])
    if not files:
        raise MalformedReply("the reply holds no file: a line `### path`, and its content in a fenced block")
    if len(files) > MOST_FILES or any(len(text) > LONGEST_FILE for text in files.values()):
        raise MalformedReply(f"the reply is more than {MOST_FILES} files of {LONGEST_FILE:,} characters")
    if entry and entry not in files and not (brief.mends and entry in brief.files):
        raise MalformedReply(f"the reply holds no {entry}, with which the program begins")
    return files


def _is_file(block: Block) -> bool:
    path = block.path
    return bool(path and block.code.strip() and may_create(path, ()) and label_of(block) not in SHELL)


def _under_root(files: Mapping[str, str], entry: str) -> dict[str, str]:
    """The files without the folder that a model put around all of them."""
    around = [path.removesuffix(entry) for path in files if entry and path.endswith(f"/{entry}")]
    if entry in files or len(around) != 1:
        return dict(files)
    return {path.removeprefix(around[0]): text for path, text in files.items()}
