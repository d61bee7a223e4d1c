"""Read the changes in a model's reply, in any common form: path -> new content of the file.

A reply may hold whole files, functions, search/replace blocks, diffs, patches and the inputs of edit tools, all
of them side by side. They are applied in their order. Each part changes a file, is a problem for the model to fix, or
changes nothing, such as a quotation or a command.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from suture.agents.replies.code_merging import (
    PYTHON_ENDINGS,
    drops_statements,
    find_defined_names,
    first_line,
    is_usage,
    merge_code,
    shows_results,
)
from suture.agents.replies.edit_problems import EditFault, EditProblem
from suture.agents.replies.fenced_blocks import CodePart, ReplyPart, TextEdit, UnusablePart
from suture.agents.replies.reply_scanning import find_unfenced_code, scan_reply
from suture.agents.replies.text_edits import ELISION, apply_hunks, are_applied
from suture.agents.replies.tree_definitions import has_tree_grammar
from suture.agents.tuning import MAX_SIMILAR_PATHS
from suture.errors import MalformedReply
from suture.project.languages import LANGUAGES
from suture.project.python_source.module_definitions import preserves_definitions
from suture.project.python_source.parsing import limit_parsing_work
from suture.project.python_source.splicing import move_to_margin
from suture.project.python_source.statement_edits import is_valid_python
from suture.project.workspace import is_creatable
from suture.project.workspace.text_files import restore_line_endings

TEST_CODE = re.compile(
    r"^\s*(?:async\s+)?def test_|^\s*(?:it|test|describe)\(|^func Test[A-Z_]", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True)
class ReadChange:
    """What a reply changes.

    A file changes as a whole or not at all: if one of its edits has a problem, none of its edits is applied.
    The other files still change; a caller that wants all or nothing looks at `problems`.

    Attributes:
        files: Path -> new content of each file that changes or is new.
        problems: What could not be applied, in the order of the reply.
    """

    files: dict[str, str] = field(default_factory=dict)
    problems: tuple[EditProblem, ...] = ()

    def render_problems(self) -> str:
        """Return all problems for the model; empty if there are none."""
        return "\n\n".join(problem.render() for problem in self.problems)


def read_change(
    text: str,
    files: Mapping[str, str],
    *,
    shown: Collection[str] | None = None,
    protected: Collection[str] = (),
    may_create: bool = True,
    is_cut: bool = False,
) -> ReadChange:
    """Return what a reply changes. No reply raises an error.

    Args:
        text: The reply, without the model's thinking.
        files: All text files of the project, path -> text, also those that may not change.
        shown: The files that the model saw: a block that names no file means one of these first. `None` stands
            for all.
        protected: Paths that no reply may write, whether they exist or not.
        may_create: Whether the reply may hold new files.
        is_cut: Whether the reply was cut off at its maximal length, so that a part without an end is incomplete.
    """
    reading = _Reading(
        originals={path: content.replace("\r\n", "\n") for path, content in files.items()},
        shown=[path for path in (files if shown is None else shown) if path in files],
        protected=frozenset(protected),
        may_create=may_create,
        is_cut=is_cut,
    )
    try:
        _read_parts(text, reading)
    except MalformedReply:  # It has too many blocks, or would take too long to parse.
        return ReadChange(problems=(EditProblem(code="unreadable", number=1),))
    reading.report_unused_code()
    changed = {
        path: restore_line_endings(content, files.get(path, ""))
        for path, content in reading.changed().items()
    }
    return ReadChange(
        files=changed,
        problems=tuple(sorted(reading.problems, key=lambda problem: problem.number)),
    )


@limit_parsing_work
def _read_parts(text: str, reading: _Reading) -> None:
    for number, part in enumerate(scan_reply(text) or find_unfenced_code(text), 1):
        reading.add(number, part)


@dataclass(kw_only=True)
class _Reading:
    """The changes that were read so far.

    Attributes:
        originals: Path -> text of the project's files, with line feeds as line ends.
        shown: Paths of the files that the model saw.
        steps: Path -> the parts that apply, in their order.
        texts: Path -> text after these steps.
        examples: (path, number) of the blocks that only seem to use the code.
    """

    originals: Mapping[str, str]
    shown: Sequence[str]
    protected: frozenset[str]
    may_create: bool
    is_cut: bool
    steps: dict[str, list[TextEdit | CodePart]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    problems: list[EditProblem] = field(default_factory=list)
    examples: list[tuple[str | None, int]] = field(default_factory=list)

    def changed(self) -> dict[str, str]:
        """Return the files that differ, without those that have a problem."""
        failed = {problem.path for problem in self.problems}
        return {
            path: text
            for path, text in self.texts.items()
            if path not in failed and self.originals.get(path) != text
        }

    def report_unused_code(self) -> None:
        """Report a block that was taken for an example if the reply has nothing else that could be its change."""
        if self.examples and not self.problems and not self.changed():
            self.problems.append(
                EditFault("no_place").at(*min(self.examples, key=lambda example: example[1]))
            )

    def add(self, number: int, part: ReplyPart) -> None:
        """Apply a part of the reply, or note why it is not applied."""
        path: str | None = part.path
        try:
            if self.is_cut and not part.is_closed:
                raise EditFault("incomplete")
            if isinstance(part, TextEdit):
                path = self._find_edited_file(part)
                self._apply_edit(part, path)
            elif isinstance(part, CodePart):
                found = self._find_code_file(part)
                path = found or path
                self._apply_code(number, part, found)
            elif isinstance(part, UnusablePart):
                path = part.path and (self._match_path(part.path) or part.path)
                raise EditFault(part.code, quote=part.quote)
        except EditFault as fault:
            self.problems.append(fault.at(path, number))

    def _text(self, path: str) -> str:
        return self.texts.get(path, self.originals.get(path, ""))

    # Text edits

    def _apply_edit(self, part: TextEdit, path: str) -> None:
        exists = path in self.originals or path in self.texts
        self._require_writable(path, exists=exists)
        if part.hunks and all(hunk.old == hunk.new for hunk in part.hunks):
            return
        if part.is_new and self._text(path).strip():
            code = "".join(hunk.new for hunk in part.hunks)
            self._replace_file(CodePart(line=part.line, path=path, code=code, is_whole=True), path)
            return
        text = self._text(path)
        try:
            self.texts[path] = apply_hunks(part.hunks, text)
        except EditFault as fault:
            is_done = path in self.steps and are_applied(part.hunks, self.originals.get(path, ""), text)
            if not is_done and not self._supersede(part, path):
                raise fault
            return
        self.steps.setdefault(path, []).append(part)

    def _supersede(self, part: TextEdit, path: str) -> bool:
        """Apply an edit in place of the earlier ones that replace the same text; return whether it applies."""
        wanted = {hunk.old for hunk in part.hunks}
        steps = self.steps.get(path, [])
        earlier = [s for s in steps if isinstance(s, TextEdit) and wanted & {hunk.old for hunk in s.hunks}]
        remaining = [step for step in steps if step not in earlier]
        if not earlier:
            return False
        text = self.originals.get(path, "")
        try:
            for step in [*remaining, part]:
                text = (
                    apply_hunks(step.hunks, text)
                    if isinstance(step, TextEdit)
                    else self._merge(path, text, step)
                )
        except EditFault:
            return False
        self.texts[path] = text
        self.steps[path] = [*remaining, part]
        return True

    def _find_edited_file(self, part: TextEdit) -> str:
        is_creation = all(not hunk.old for hunk in part.hunks) and not any(hunk.line for hunk in part.hunks)
        if part.path is not None:
            path = self._match_path(part.path)
            if path is not None:
                return path
            if part.is_new or is_creation:
                return _clean_path(part.path)
            raise EditFault("no_such_file", candidates=self._similar_paths(part.path))
        tiers = [self._mentioned_paths(part.mentioned), self.shown, list(self.texts), list(self.originals)]
        for tier in tiers:
            fitting = [path for path in dict.fromkeys(tier) if self._fits(part, path)]
            if len(fitting) == 1:
                return fitting[0]
            if fitting and tier is not tiers[0]:
                raise EditFault("several_files", candidates=fitting[:MAX_SIMILAR_PATHS])
            if fitting:
                return fitting[-1]  # The file that the reply names last.
        only = self.shown if len(self.shown) == 1 else self._mentioned_paths(part.mentioned)[-1:]
        if only:
            return only[0]
        raise EditFault("names_no_file", quote=first_line(part.hunks[0].old) if part.hunks else "")

    def _fits(self, part: TextEdit, path: str) -> bool:
        """Return whether all hunks apply to a file that may change."""
        text = self._text(path)
        first = first_line(part.hunks[0].old) if part.hunks else ""
        if path in self.protected or not first or first not in text:
            return False
        try:
            apply_hunks(part.hunks, text)
        except EditFault:
            return False
        return True

    # Code

    def _apply_code(self, number: int, part: CodePart, path: str | None) -> None:
        if path is None:
            if part.label and part.may_be_code and not TEST_CODE.search(part.code):
                self.examples.append((part.path, number))
            return
        part = replace(part, code=_without_path_comment(part, path))
        current = self._text(path)
        exists = path in self.originals or path in self.texts
        if exists and self._is_quotation(path, part):
            return
        self._require_writable(path, exists=exists)
        if not part.is_closed and not is_valid_python(part.code):
            raise EditFault("incomplete")
        if part.is_whole or not current.strip():
            self._replace_file(part, path)
            return
        text = self._merge(path, current, part)
        if text == current:
            if path in self.steps:
                return
            if not is_usage(part.code, path):
                raise EditFault("partial_file", quote=first_line(part.code))
            self.examples.append((path, number))
            return
        if text.rstrip() == part.code.rstrip():
            self._replace_file(part, path)
            return
        if path.endswith(PYTHON_ENDINGS) and drops_statements(part.code, text):
            if part.path is not None and not shows_results(part.code):
                raise EditFault("partial_file", quote=first_line(part.code))
            self.examples.append((path, number))
        self.texts[path] = text
        self.steps.setdefault(path, []).append(part)

    def _merge(self, path: str, text: str, part: CodePart) -> str:
        return merge_code(path, text, part.code, _context_of(part), is_whole=part.is_whole)

    def _replace_file(self, part: CodePart, path: str) -> None:
        """Take a part as the whole file: what the reply said about this file before no longer counts."""
        self.texts[path] = self._merge(path, self.originals.get(path, ""), replace(part, is_whole=True))
        self.problems = [problem for problem in self.problems if problem.path != path]
        self.steps[path] = [part]

    def _is_quotation(self, path: str, part: CodePart) -> bool:
        """Return whether code is in the project's file already, so that it does not change the file."""
        original = self.originals.get(path, "")
        if not original.strip() or not part.code.strip():
            return original == part.code
        is_fragment = not find_defined_names(path, part.code) or path in self.protected
        if is_fragment and not part.is_whole and _contains_lines(original, part.code):
            return True
        known = {line.strip() for line in original.split("\n")}
        if any(line.strip() not in known and not ELISION.match(line) for line in part.code.split("\n")):
            return False
        try:
            return self._merge(path, original, part) == original
        except EditFault:
            return False

    def _find_code_file(self, part: CodePart) -> str | None:
        """Return the file that code belongs to; `None` if it belongs to none."""
        if part.path is not None:
            return self._find_named_file(part, part.path)
        heading = _last_line(part.mentioned).strip().strip("#*`: ").removeprefix("File:").strip("` ")
        if heading in self.originals:
            return heading
        names = find_defined_names(_guess_path(part), part.code)
        mentioned = self._mentioned_paths(part.mentioned)
        writable = [path for path in self.originals if path not in self.protected]
        shown = [path for path in self.shown if path in writable]
        tiers = [
            [path for path in tier if path.endswith(_endings(part))]
            for tier in (mentioned, shown, writable, list(self.originals))
        ]
        for tier in tiers:
            matches = {path: self._count_shared(path, names) for path in dict.fromkeys(tier)}
            best = max(matches.values(), default=0)
            fitting = [path for path, count in matches.items() if count == best > 0]
            if len(fitting) > 1:
                fitting = [path for path in fitting if path in mentioned] or fitting
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                raise EditFault("several_files", candidates=fitting[:MAX_SIMILAR_PATHS])
        if not names or TEST_CODE.search(part.code):
            return None
        only = tiers[0][-1:] or (tiers[1] if len(tiers[1]) == 1 else [])
        empty = [path for path in tiers[1] if not self.originals[path].strip()]
        chosen = only or (empty if len(empty) == 1 else [])
        if not chosen:
            raise EditFault("names_no_file", quote=sorted(names)[0])
        return chosen[0]

    def _find_named_file(self, part: CodePart, name: str) -> str:
        path = self._match_path(name)
        cleaned = _clean_path(name)
        if path is not None and path != cleaned and not part.is_whole:
            names = find_defined_names(path, part.code)
            if names and not self._count_shared(path, names) and is_creatable(cleaned, self.originals.keys()):
                return cleaned  # A new file, whose name is the end of another one's path.
        if path is None and "/" not in cleaned and cleaned.endswith(PYTHON_ENDINGS):
            # A whole known file under a wrong name, such as `solution.py`, is this file.
            contained = [p for p in self.shown if find_defined_names(p, self.originals[p])
                         and preserves_definitions(part.code, self.originals[p])]  # fmt: skip
            if len(contained) == 1:
                return contained[0]
        return path if path is not None else cleaned

    def _count_shared(self, path: str, names: Collection[str]) -> int:
        text = self._text(path)
        if not any(name.rpartition(".")[2] in text for name in names):
            return 0
        known = {*find_defined_names(path, text), *_member_names(path, text)}
        return len({*names} & known)

    # Paths

    def _require_writable(self, path: str, *, exists: bool) -> None:
        if path in self.protected:
            raise EditFault("protected")
        if exists:
            return
        if not self.may_create:
            raise EditFault("no_such_file", candidates=self._similar_paths(path))
        if not is_creatable(path, {*self.originals, *self.protected}):
            raise EditFault("bad_path")

    def _match_path(self, name: str) -> str | None:
        """Return the existing file that a path means, which may lack folders or have too many of them.

        Raises:
            EditFault: It may mean several files.
        """
        name = _clean_path(name)
        known = {*self.originals, *self.texts, *self.protected}
        if name in known:
            return name
        parts = name.strip("/").split("/")
        if parts[-1] == "__init__.py" and not name.startswith("/"):
            return None
        matches = [path for path in known if path.endswith(f"/{name.strip('/')}")]
        if len(matches) > 1:
            matches = [path for path in matches if path in self.shown] or matches
        if len(matches) > 1:
            raise EditFault("several_files", candidates=matches[:MAX_SIMILAR_PATHS])
        if matches:
            return matches[0]
        # A path of the model's own machine, such as `/workspace/project/lib/tax.py`, or with the project's folder.
        folders = {path.partition("/")[0] for path in known if "/" in path}
        if name.startswith("/") or (len(parts) > 1 and parts[0] not in folders):
            tails = ("/".join(parts[start:]) for start in range(1, len(parts)))
            found = next((tail for tail in tails if tail in known), None)
            if found is not None and (name.startswith("/") or "/" in found or len(parts) == 2):
                return found
        return None

    def _similar_paths(self, name: str) -> list[str]:
        names = [path for path in self.originals if path.rpartition("/")[2] == name.rpartition("/")[2]]
        return (names or difflib.get_close_matches(name, self.originals, n=MAX_SIMILAR_PATHS))[
            :MAX_SIMILAR_PATHS
        ]

    def _mentioned_paths(self, text: str) -> list[str]:
        """Return the project's files that a string names, in the order of their last mentions."""
        found: dict[str, None] = {}
        for token in re.findall(r"[\w@.+/\\-]+", text):
            cleaned = token.strip(".")
            if "." not in cleaned and cleaned not in self.originals:
                continue
            try:
                path = self._match_path(cleaned)
            except EditFault:
                continue
            if path is not None:
                found.pop(path, None)
                found[path] = None
        return list(found)


def _clean_path(name: str) -> str:
    """Return a path as the project writes it."""
    path = name.strip().strip("`'\"*").replace("\\", "/")
    path = re.sub(r":\d+(?:[-:]\d+)?$", "", path)
    while path.startswith("./"):
        path = path[2:]
    return path


LANGUAGE_ENDINGS = {
    label: facts.extensions
    for language, facts in LANGUAGES.items()
    for label in (language, facts.fence, *facts.aliases, *(ending.strip(".") for ending in facts.extensions))
}
"""The endings of the files that a block with a label may belong to."""


def _endings(part: CodePart) -> tuple[str, ...]:
    """Return the endings of the files that code may belong to; that of any file if the reply does not say."""
    return tuple(LANGUAGE_ENDINGS.get(part.label, ("",)))


def _guess_path(part: CodePart) -> str:
    """Return a path with an ending of the code's language."""
    if part.label in LANGUAGE_ENDINGS:
        return f"x{LANGUAGE_ENDINGS[part.label][0]}"
    if is_valid_python(move_to_margin(part.code)[1]):
        return "x.py"
    return "x.go" if re.search(r"^(?:func|package) ", part.code, re.MULTILINE) else "x.ts"


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.split("\n")) if line.strip()), "")


def _member_names(path: str, text: str) -> Iterator[str]:
    """Yield the names of all functions in a file, also those of methods and nested ones."""
    if path.endswith(PYTHON_ENDINGS):
        yield from re.findall(r"^\s*(?:async\s+)?def\s+(\w+)", text, re.MULTILINE)
    elif has_tree_grammar(path):
        yield from (name.rpartition(".")[2] for name in find_defined_names(path, text))


def _context_of(part: CodePart) -> str:
    """Return what is said about code: the text before it, and the comments at its top."""
    comments = []
    for line in part.code.split("\n"):
        if line.strip() and not line.lstrip().startswith(("#", "//")):
            break
        comments.append(line)
    return "\n".join([part.mentioned, *comments])


def _contains_lines(text: str, part: str) -> bool:
    """Return whether a string has the lines of another one, ignoring indentation and blank lines."""
    lines, wanted = ([line.strip() for line in t.split("\n") if line.strip()] for t in (text, part))
    return any(lines[n : n + len(wanted)] == wanted for n in range(len(lines) - len(wanted) + 1))


def _without_path_comment(part: CodePart, path: str) -> str:
    """Return code without a first line that only names its file."""
    first, _, rest = part.code.partition("\n")
    text = first.strip().strip("#/*<!->: ").removeprefix("File:").removeprefix("file:").strip("` ")
    is_comment = first.lstrip().startswith(("#", "//", "/*", "<!--"))
    names = (path, part.path, path.rpartition("/")[2])
    return rest.lstrip("\n") if is_comment and text in names else part.code
