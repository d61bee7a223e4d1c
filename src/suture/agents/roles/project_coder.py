"""The coder of several files in any language: its brief, its prompt, and the files in its reply.

The code in a reply is not parsed: whether it builds is part of the verdict.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from suture.agents.prompting.fitting import Prefill, PromptDraft, PromptPart
from suture.agents.prompting.prefill import FENCE_END
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import (
    advice_part,
    attempts_part,
    failure_parts,
    refused_part,
    required_tests_part,
)
from suture.agents.replies.fenced_blocks import SHELL_LABELS, CodeBlock, fenced_blocks
from suture.agents.replies.repaired_files import read_edited_files
from suture.agents.replies.written_files import fence_label
from suture.agents.roles.coder import RepairBrief
from suture.agents.tuning import MAX_PROJECT_FILE_CHARS, MAX_PROJECT_FILES
from suture.core.records import ProjectKind, Task
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES, fill_placeholders
from suture.project.python_source.functions import tidy_module
from suture.project.python_source.parsing import limit_parsing_work
from suture.project.skeletons import Skeleton, find_skeleton
from suture.project.workspace import is_creatable

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
"""What each kind of project must do when it is started, as the prompt says it."""


@dataclass(frozen=True, kw_only=True)
class ProjectBrief(RepairBrief):
    """What the coder needs to write a project's files or to repair them.

    Attributes:
        rules: How the code is laid out and started, and other rules.
        entry: The required main file; empty if the project has code already.
        tests: Source of the user's visible tests.
        is_repair: Whether `files` belong to a candidate that fails. If not, they are the project's existing
            code, and the reply adds to it.
        skeleton: The program of which the reply is one file; `None` if the reply may be any files.
        sample: The first lines of the sample data; empty if there are none.
    """

    rules: str
    entry: str = ""
    tests: str = ""
    is_repair: bool = False
    skeleton: Skeleton | None = None
    sample: str = ""


def find_task_skeleton(task: Task) -> Skeleton | None:
    """Return the skeleton of which the model writes one file; `None` if it may write any file."""
    project = task.project
    if project is None or project.kind is None or not project.skeleton_file:
        return None
    return find_skeleton(task.language, project.kind, name=project.name, sample=project.sample)


def render_project_rules(task: Task) -> str:
    """Return how the code of a task is laid out and started, for the prompt."""
    skeleton = find_task_skeleton(task)
    if skeleton is not None:
        return skeleton.rules.strip()
    facts, project = LANGUAGES[task.language], task.project
    if project is not None and project.kind is None:
        style = "Keep to the project's own style, and leave its tests alone."
        note = facts.new_project.dependency_note if facts.new_project is not None else ""
        return f"It is {facts.label}. {style} {note}".rstrip()
    layout = facts.layout
    if project is None:
        content = f", with `{task.entry_point}`" if task.entry_point else ""
        rule = layout.function_note.format(name=task.entry_point or "name")
        return f"Write it in {facts.label} into the file `{task.module}`{content}. {rule}"
    assert project.kind is not None
    start = " ".join(fill_placeholders(layout.manual_start, project.name, task.module))
    contract = CONTRACTS[project.kind].format(start=start, entry=task.module)
    style = layout.style.format(name=project.name)
    scaffold_note = "Its manifest, README and .gitignore are there already."
    return (
        f"It is {facts.label}. {contract} {style} {scaffold_note if project.is_new else layout.dependency_note}"
        f" Write the code alone, beginning with `{task.module}`, and no tests."
    )


def draft_project_prompt(brief: ProjectBrief, prompt: Prompt) -> PromptDraft:
    """Return the coder's prompt."""
    if brief.skeleton is not None:
        return _draft_skeleton_prompt(brief, brief.skeleton, prompt)
    files = [f"### {path}\n{_fenced(path, text)}" for path, text in brief.files.items()]
    heading = "" if brief.is_repair else "\nThese files are there:\n\n"
    texts = {"task": brief.statement.strip(), "rules": brief.rules}
    parts = {
        "tests": required_tests_part(brief.tests, fence=""),
        "files": PromptPart(pieces=files, separator="\n\n", before=heading),
        "refused": refused_part(brief.refused),
        "advice": advice_part(brief.advice),
    }
    if not brief.is_repair:
        return PromptDraft(prompt=prompt, template="write", texts=texts, parts=parts)
    parts |= {**failure_parts(brief.facts, brief.output), "history": attempts_part(brief.history)}
    texts["how"] = prompt.render(brief.strategy)
    return PromptDraft(prompt=prompt, template="repair", texts=texts, parts=parts)


def _draft_skeleton_prompt(brief: ProjectBrief, skeleton: Skeleton, prompt: Prompt) -> PromptDraft:
    """Return a prompt that asks for the one file of a skeleton that the model writes."""
    path = skeleton.file
    sample = brief.sample.splitlines()
    texts = {"task": brief.statement.strip(), "rules": skeleton.rules.strip(), "path": path}
    parts = {
        "tests": required_tests_part(brief.tests, fence=""),
        "sample": PromptPart(pieces=sample, before="\nA table may begin so:\n\n```\n", after="\n```\n"),
        "refused": refused_part(brief.refused),
        "files": PromptPart(pieces=[_fenced(path, text) for path, text in brief.files.items()]),
        "advice": advice_part(brief.advice),
    }
    fence = f"```{_fence(path)}\n"
    if brief.is_repair:
        parts |= {**failure_parts(brief.facts, brief.output), "history": attempts_part(brief.history)}
        return PromptDraft(
            prompt=prompt,
            template="repair_one",
            texts={**texts, "how": prompt.render(brief.strategy)},
            parts=parts,
            prefill=Prefill(text=fence, stop=FENCE_END),
        )
    texts |= {"example_task": skeleton.example_task, "example": _fenced(path, skeleton.example)}
    beginning = f"{fence}{skeleton.begin(brief.statement)}"
    return PromptDraft(
        prompt=prompt,
        template="write_one",
        texts=texts,
        parts=parts,
        prefill=Prefill(text=beginning, stop=(*FENCE_END, *skeleton.stops)),
    )


def _fenced(path: str, text: str) -> str:
    return f"```{_fence(path)}\n{text.strip()}\n```"


def _fence(path: str) -> str:
    """Return the label of a fence for a file."""
    labels = (facts.fence for facts in LANGUAGES.values() if path.endswith(facts.extensions))
    return next(labels, path.rpartition(".")[2])


def _file_of_skeleton(reply: Reply, brief: ProjectBrief, skeleton: Skeleton) -> dict[str, str]:
    """Return the file that a reply writes, and the packages that it asks for; nothing else is taken."""
    blocks = [block for block in fenced_blocks(reply.text) if _is_code(block)]
    named = {block.path: block.code for block in blocks if block.path}
    manifests = {path: text for path, text in named.items() if path == "requirements.txt"}
    codes = [block.code for block in blocks if block.path not in manifests and block.label != "json"]
    if not codes:
        raise MalformedReply(f"the reply holds no code: {skeleton.file} in a fenced block")
    code = named.get(skeleton.file) or max(codes, key=len)
    if skeleton.repeats_example(code, brief.statement):
        raise MalformedReply("the reply repeats the example, which is about another task")
    code = tidy_module(code) if skeleton.file.endswith(".py") else code
    for path, text in manifests.items():
        own_lines = skeleton.files.get(path, "").splitlines()
        manifests[path] = "\n".join(dict.fromkeys([*own_lines, *text.strip().splitlines()])) + "\n"
    return _drop_standard_modules({skeleton.file: code, **manifests}, brief)


def _is_code(block: CodeBlock) -> bool:
    return bool(block.code.strip()) and fence_label(block) not in SHELL_LABELS


@limit_parsing_work
def files_from_project_reply(reply: Reply, brief: ProjectBrief) -> dict[str, str]:
    """Return the files in a reply, path -> text."""
    if brief.skeleton is not None:
        return _file_of_skeleton(reply, brief, brief.skeleton)
    edited = read_edited_files(reply, brief)
    blocks = fenced_blocks(reply.text) if edited is None else []
    if reply.finish == "length" and any(not block.is_closed for block in blocks):
        raise MalformedReply(
            "the reply was cut short before its last file was complete", remedy="raise model.max_tokens"
        )
    files = {block.path: block.code for block in blocks if block.path and _is_file(block)} | (edited or {})
    entry = brief.entry
    only_path = entry or next(iter(brief.files), "")
    if not files and only_path:  # A block that names no file is taken for the main one.
        codes = [block.code for block in blocks if block.may_be_code and block.code.strip()]
        files = {only_path: max(codes, key=len)} if codes else {}
    files = _drop_standard_modules(_strip_root_folder(files, entry), brief)
    if entry and entry not in files and not brief.is_repair:
        sources = [path for path in files if path.rpartition(".")[2] == entry.rpartition(".")[2]]
        if len(sources) == 1:  # The whole program is in one file with another name.
            files[entry] = files.pop(sources[0])
    if not files:
        raise MalformedReply("the reply holds no file: a line `### path`, and its content in a fenced block")
    if len(files) > MAX_PROJECT_FILES or any(len(text) > MAX_PROJECT_FILE_CHARS for text in files.values()):
        raise MalformedReply(
            f"the reply is more than {MAX_PROJECT_FILES} files of {MAX_PROJECT_FILE_CHARS:,} characters"
        )
    if entry and entry not in files and not (brief.is_repair and entry in brief.files):
        raise MalformedReply(f"the reply holds no {entry}, with which the program begins")
    return files


def _drop_standard_modules(files: Mapping[str, str], brief: ProjectBrief) -> dict[str, str]:
    """Return the files without new requirements of modules that Python has, such as `json`: no index offers them."""
    kept = dict(files)
    for path in [path for path in files if path.rpartition("/")[2] == "requirements.txt"]:
        present = brief.files.get(path, "").splitlines()
        lines = [
            line
            for line in files[path].splitlines()
            if line in present or re.split(r"[\s=<>~!;]", line, maxsplit=1)[0] not in sys.stdlib_module_names
        ]
        kept[path] = "".join(f"{line}\n" for line in lines)
        if not kept[path].strip() and path not in brief.files:
            del kept[path]
    return kept


def _is_file(block: CodeBlock) -> bool:
    return _is_code(block) and block.path is not None and is_creatable(block.path, ())


def _strip_root_folder(files: Mapping[str, str], entry: str) -> dict[str, str]:
    """Return the files without a folder that the model put around all of them."""
    root_folders = [path.removesuffix(entry) for path in files if entry and path.endswith(f"/{entry}")]
    if entry in files or len(root_folders) != 1:
        return dict(files)
    return {path.removeprefix(root_folders[0]): text for path, text in files.items()}
