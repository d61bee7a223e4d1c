"""The coder for languages whose source is not parsed: its brief, its prompt, and the files in its reply.

The prompt is that of the Python coder with another language's name and fence. A block of a reply is a whole
file, or it replaces the definitions at the left margin that it contains. A reply may also hold search/replace
blocks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from suture.agents.prompting.fitting import PromptDraft
from suture.agents.prompting.prompt_files import Prompt
from suture.agents.prompting.prompt_parts import files_part
from suture.agents.replies.fenced_blocks import CodeBlock, fenced_blocks
from suture.agents.replies.repaired_files import read_edited_files
from suture.agents.roles.coder import RepairBrief, draft_coder_prompt
from suture.core.records import Language
from suture.errors import MalformedReply, UnchangedCode
from suture.models import Reply
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import limit_parsing_work

TOP_LEVEL_START = re.compile(r"^(?=[^\s)\]}])", re.MULTILINE)
PATH_COMMENT = r"\s*{}\s*(?:[Ff]ile:?\s*)?([\w./-]+\.[A-Za-z]{{1,4}})\s*\n"
"""A first line that names the file in a comment; the language's comment sign takes the place of `{}`."""


@dataclass(frozen=True, kw_only=True)
class TextBrief(RepairBrief):
    """What the coder needs to repair code of another language than Python."""

    language: Language


def draft_text_prompt(brief: TextBrief, prompt: Prompt) -> PromptDraft:
    """Return the coder's prompt."""
    facts = LANGUAGES[brief.language]
    templates = {
        name: replace(t, text=t.text.replace("```python", f"```{facts.fence}").replace("Python", facts.label))
        for name, t in prompt.templates.items()
    }
    draft = draft_coder_prompt(brief, replace(prompt, templates=templates))
    return replace(draft, parts={**draft.parts, "files": files_part(brief.files, facts.fence)})


@limit_parsing_work
def files_from_text_reply(reply: Reply, brief: TextBrief) -> dict[str, str]:
    """Return the files that a reply changes, path -> text."""
    if (edited := read_edited_files(reply, brief)) is not None:
        return edited
    fence = LANGUAGES[brief.language].fence
    blocks = [b for b in fenced_blocks(reply.text) if b.is_closed and (b.may_be_code or b.label == fence)]
    if not blocks:
        is_cut = reply.finish == "length"
        why = "was cut short before the code was complete" if is_cut else "holds no code in a fenced block"
        raise MalformedReply(f"the reply {why}", remedy="raise model.max_tokens" if is_cut else "")
    changed: dict[str, str] = {}
    for block in blocks:
        path = _find_target(block, brief)
        if path is not None:
            changed[path] = _merge(path, changed.get(path, brief.files[path]), block.code, brief.language)
    changed = {path: text for path, text in changed.items() if text.strip() != brief.files[path].strip()}
    if not changed:
        raise UnchangedCode("the reply changes none of the files")
    return changed


def _find_target(block: CodeBlock, brief: TextBrief) -> str | None:
    """Return the file that a block names, else the one whose definitions it contains."""
    comment_sign = re.escape(LANGUAGES[brief.language].line_comment)
    path_comment = re.match(PATH_COMMENT.format(comment_sign), block.code)
    named_path = block.path or (path_comment[1] if path_comment else None)
    if named_path is not None:
        matches = [path for path in brief.files if path == named_path or path.endswith(f"/{named_path}")]
        return matches[0] if len(matches) == 1 else None
    if len(brief.files) == 1:
        return next(iter(brief.files))
    names = _split_chunks(block.code, brief.language).keys()
    shared_counts = {
        path: len(names & _split_chunks(text, brief.language).keys()) for path, text in brief.files.items()
    }
    best = max(shared_counts, key=lambda path: shared_counts[path])
    return best if shared_counts[best] else None


def _merge(path: str, original: str, code: str, language: Language) -> str:
    """Return the code if it is the whole file, else the original with the code's definitions in place."""
    old, new = _split_chunks(original, language), _split_chunks(code, language)
    lost = old.keys() - new.keys()
    if not lost:
        return code
    # Most files begin with a package and imports, so these do not show that the code belongs to this file.
    if not old.keys() & new.keys() - {"package", "import"}:
        raise MalformedReply(f"the reply is not the whole of {path}: it leaves out {', '.join(sorted(lost))}")
    # The package stays as it is: the file's folder decides on it.
    added = [chunk for name, chunk in new.items() if name not in old]
    merged = {name: new.get(name, chunk) if name != "package" else chunk for name, chunk in old.items()}
    return "\n".join(chunk.strip("\n") + "\n" for chunk in [*merged.values(), *added] if chunk.strip())


def _split_chunks(text: str, language: Language) -> dict[str, str]:
    """Return the top-level definitions: name -> text, with all that follows up to the next definition.

    The text before the first definition has the name ""; a repeated name gets an apostrophe.
    """
    chunks: dict[str, str] = {"": ""}
    name, comments, facts = "", "", LANGUAGES[language]
    for piece in TOP_LEVEL_START.split(text):
        if piece.startswith((facts.line_comment, "/*", "*")):
            comments += piece  # A comment belongs to the definition below it.
            continue
        if definition := facts.definition_pattern.match(piece):
            name = next(re.sub(r"\s+", " ", group) for group in definition.groups() if group)
            while name in chunks:
                name += "'"
            chunks[name] = ""
        chunks[name] += comments + piece
        comments = ""
    chunks[name] += comments
    return {name: chunk for name, chunk in chunks.items() if name or chunk.strip()}
