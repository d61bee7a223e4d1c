"""The coder for languages whose source we do not parse: its prompt, and reading its reply.

The prompt is the coder's own, in that language's name and fence. A reply is read as text: a file is replaced
whole, by search/replace blocks, or definition by definition where each stands at the left margin under a name
of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.replies.edit_blocks import apply_edits, split_edits
from suture.agents.replies.fenced_blocks import Block, fenced_blocks
from suture.agents.roles.coder import RepairBrief, coder_draft
from suture.core.records import Language
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import bounded

START = re.compile(r"^(?=[^\s)\]}])", re.MULTILINE)
FIRST_COMMENT = r"\s*{}\s*(?:[Ff]ile:?\s*)?([\w./-]+\.[A-Za-z]{{1,4}})\s*\n"


@dataclass(frozen=True, kw_only=True)
class TextBrief(RepairBrief):
    """What the coder needs to mend code of another language than Python."""

    language: Language


def text_draft(brief: TextBrief, prompt: Prompt) -> Draft:
    """The coder's prompt, before it is cut to the room there is."""
    facts = LANGUAGES[brief.language]
    draft = coder_draft(brief, _in_language(prompt, facts.label, facts.fence))
    pieces = [f"### {path}\n```{facts.fence}\n{text.strip()}\n```" for path, text in brief.files.items()]
    return replace(draft, parts={**draft.parts, "files": PromptPart(pieces=pieces, joint="\n\n")})


def _in_language(prompt: Prompt, label: str, fence: str) -> Prompt:
    """The same templates, where they speak of Python; what fills them is not touched."""
    spoken = {
        name: replace(t, text=t.text.replace("```python", f"```{fence}").replace("Python", label))
        for name, t in prompt.templates.items()
    }
    return replace(prompt, templates=spoken)


@bounded
def files_from_text_reply(reply: Reply, brief: TextBrief) -> dict[str, str]:
    """The files that a reply asks to write.

    Raises:
        MalformedReply: There is no code in it, or it cannot be put into the files without losing code.
        EditDoesNotApply: A search/replace block in it has no one place.
    """
    edits, text = split_edits(reply.text)
    fence = LANGUAGES[brief.language].fence
    blocks = [b for b in fenced_blocks(text) if b.closed and (b.may_be_code or b.label == fence)]
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


def _target(block: Block, brief: TextBrief) -> str | None:
    """The file that a block names, else the one whose names it defines."""
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
    """Top-level pieces by the name that each defines; the rest stays with the piece before it."""
    found: dict[str, str] = {"": ""}
    name, waiting, facts = "", "", LANGUAGES[language]
    comments = (facts.line_comment, "/*", "*")
    for piece in START.split(text):
        if piece.startswith(comments):
            waiting += piece  # a comment stands above what it is about
            continue
        defined = facts.definition.match(piece)
        if defined:
            name = next(re.sub(r"\s+", " ", group) for group in defined.groups() if group)
            while name in found:
                name += "'"
            found[name] = ""
        found[name] += waiting + piece
        waiting = ""
    found[name] += waiting
    return {name: chunk for name, chunk in found.items() if name or chunk.strip()}
