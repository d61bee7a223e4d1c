"""The coder for languages that are not parsed here: its prompt, and reading its reply.

The prompt is the coder's own with the language's name and fence. A reply is read as text: it replaces a whole
file, applies search/replace blocks, or replaces the definitions at the left margin that it names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.replies.edit_blocks import apply_edits, split_edits
from suture.agents.replies.fenced_blocks import CodeBlock, fenced_blocks
from suture.agents.roles.coder import RepairBrief, draft_coder_prompt
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import limit_parsing_work

START = re.compile(r"^(?=[^\s)\]}])", re.MULTILINE)
FIRST_COMMENT = r"\s*{}\s*(?:[Ff]ile:?\s*)?([\w./-]+\.[A-Za-z]{{1,4}})\s*\n"


@dataclass(frozen=True, kw_only=True)
class TextBrief(RepairBrief):
    """What the coder needs to repair code of another language than Python."""

    language: Language


def draft_text_prompt(brief: TextBrief, prompt: Prompt) -> PromptDraft:
    """Return the coder's prompt."""
    facts = LANGUAGES[brief.language]
    draft = draft_coder_prompt(brief, _in_language(prompt, facts.label, facts.fence))
    pieces = [f"### {path}\n```{facts.fence}\n{text.strip()}\n```" for path, text in brief.files.items()]
    return replace(draft, parts={**draft.parts, "files": PromptPart(pieces=pieces, separator="\n\n")})


def _in_language(prompt: Prompt, label: str, fence: str) -> Prompt:
    """Return the templates with another language's name and fence in place of Python's."""
    spoken = {
        name: replace(t, text=t.text.replace("```python", f"```{fence}").replace("Python", label))
        for name, t in prompt.templates.items()
    }
    return replace(prompt, templates=spoken)


@limit_parsing_work
def files_from_text_reply(reply: Reply, brief: TextBrief) -> dict[str, str]:
    """Return the files that a reply changes, path -> text.

    Raises:
        MalformedReply: There is no code, or it cannot be merged without losing code.
        EditDoesNotApply: A search/replace block does not match exactly one place.
    """
    edits, text = split_edits(reply.text)
    fence = LANGUAGES[brief.language].fence
    blocks = [b for b in fenced_blocks(text) if b.is_closed and (b.may_be_code or b.label == fence)]
    if not blocks and not edits:
        cut = reply.finish == "length"
        why = "was cut short before the code was complete" if cut else "holds no code in a fenced block"
        raise MalformedReply(f"the reply {why}", remedy="raise model.max_tokens" if cut else "")
    edited = apply_edits(edits, brief.files, brief.project)
    changed: dict[str, str] = {}
    for block in blocks:
        path = _target(block, brief) if block.path or not edits else None
        if path is not None and path not in edited:
            changed[path] = _merged(path, changed.get(path, brief.files[path]), block.code, brief.language)
    changed = {path: text for path, text in changed.items() if text.strip() != brief.files[path].strip()}
    changed |= edited
    if not changed:
        raise MalformedReply("the reply changes none of the files")
    return changed


def _target(block: CodeBlock, brief: TextBrief) -> str | None:
    """Return the file that a block names, else the one whose definitions it contains."""
    mark = re.escape(LANGUAGES[brief.language].line_comment)
    first = re.match(FIRST_COMMENT.format(mark), block.code)
    said = block.path or (first[1] if first else None)
    if said is not None:
        named = [path for path in brief.files if path == said or path.endswith(f"/{said}")]
        return named[0] if len(named) == 1 else None
    if len(brief.files) == 1:
        return next(iter(brief.files))
    names = _chunks(block.code, brief.language).keys()
    shared = {path: len(names & _chunks(text, brief.language).keys()) for path, text in brief.files.items()}
    best = max(shared, key=lambda path: shared[path])
    return best if shared[best] else None


def _merged(path: str, original: str, code: str, language: Language) -> str:
    old, new = _chunks(original, language), _chunks(code, language)
    lost = old.keys() - new.keys()
    if not lost:
        return code
    common = old.keys() & new.keys() - {"package", "import"}
    if not common:
        raise MalformedReply(f"the reply is not the whole of {path}: it leaves out {', '.join(sorted(lost))}")
    added = [chunk for name, chunk in new.items() if name not in old]
    parts = {name: new.get(name, chunk) if name != "package" else chunk for name, chunk in old.items()}
    return "\n".join(chunk.strip("\n") + "\n" for chunk in [*parts.values(), *added] if chunk.strip())


def _chunks(text: str, language: Language) -> dict[str, str]:
    """Return the top-level pieces by the name that each defines, with other text after the piece."""
    found: dict[str, str] = {"": ""}
    name, waiting, facts = "", "", LANGUAGES[language]
    comments = (facts.line_comment, "/*", "*")
    for piece in START.split(text):
        if piece.startswith(comments):
            waiting += piece  # a comment belongs to the definition below it
            continue
        defined = facts.definition_pattern.match(piece)
        if defined:
            name = next(re.sub(r"\s+", " ", group) for group in defined.groups() if group)
            while name in found:
                name += "'"
            found[name] = ""
        found[name] += waiting + piece
        waiting = ""
    found[name] += waiting
    return {name: chunk for name, chunk in found.items() if name or chunk.strip()}
