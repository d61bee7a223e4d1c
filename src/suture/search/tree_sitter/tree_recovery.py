"""Repairs JavaScript, TypeScript and Go files that do not parse, by `syntax_recovery` with tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import CheckOutcome, Language
from suture.mutation.syntax_repair.tree_repair import find_parsable_trees, find_tree_stop
from suture.project.languages import is_source
from suture.project.workspace import decode_text
from suture.search.engine.syntax_recovery import FileRecovery, RecoveryMethods
from suture.search.search_records import FailingProject, SearchLimits, SearchResult
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.tree_sitter.tree_search import search_with_tree_sitter
from suture.search.tuning import (
    MAX_TREE_TEXTS_RUN,
    TEXT_RUN_TIMEOUT_S,
    TREE_TEXT_PATIENCE,
    TREE_TEXT_RIVALS,
)

REJECTION = "SyntaxError"
"""The exception of JavaScript runtimes for sources that they reject, even if the tree has no error."""
PARSE_MESSAGES = re.compile(
    r"(?i)syntax|unexpected|expect(?:ed|ing)|unterminated|unclosed|missing|pars(?:e|ing)|transform"
)
"""What runners report of a file that they cannot parse."""


@dataclass(frozen=True, kw_only=True)
class UnparsableFile:
    """A file that does not parse.

    Attributes:
        path: Its path from the project's root.
        line: The line that the runtime reports; 0 if the file's tree has an error, which is more exact.
    """

    path: str
    line: int


def find_unparsable_file(
    outcomes: Sequence[CheckOutcome], texts: Mapping[str, str], language: Language
) -> UnparsableFile | None:
    """Return the editable file that does not parse according to a failing test; `None` if there is none.

    A file whose tree has an error comes before one that the runtime rejects without such an error.

    Args:
        outcomes: The outcomes of the tests on the unchanged code.
        texts: Path -> text of the files that may be changed.
        language: Their language, which has a grammar.
    """
    counterexamples = [o.counterexample for o in outcomes if o.counterexample is not None]
    messages = [(example.file, f"{example.exception} {example.actual}") for example in counterexamples]
    for path, text in sorted(texts.items()):
        is_named = any(
            (file == path or path in message) and PARSE_MESSAGES.search(message) for file, message in messages
        )
        if is_named and find_tree_stop(text, path, language) is not None:
            return UnparsableFile(path=path, line=0)
    for example in counterexamples:
        if example.exception.startswith(REJECTION) and example.file in texts and example.line:
            return UnparsableFile(path=example.file, line=example.line)
    return None


async def recover_with_tree_sitter(
    project: FailingProject, unparsable: UnparsableFile, limits: SearchLimits, *, wall_s: float
) -> SearchResult:
    """Search for changes with which all tests pass, where a file does not parse.

    Args:
        project: The project; its language has a grammar.
        unparsable: The file that does not parse.
        limits: The limits of the search.
        wall_s: Wall-clock seconds that the command took on the unchanged project.

    Raises:
        SandboxError: The sandbox failed.
    """
    path, language = unparsable.path, project.language
    sources = {
        name: decode_text(content) for name, content in project.files.items() if is_source(name, language)
    }
    tests = {name: sources[name] for name in project.command.test_files if name in sources}
    texts = {**sources, **project.texts}
    literals = collect_tree_literals(tests.items(), language)
    methods = RecoveryMethods(
        find_texts=lambda seconds: find_parsable_trees(
            path, texts, language, seconds=seconds, reported_line=unparsable.line
        ),
        search=search_with_tree_sitter,
        find_warnings=lambda before, after: find_tree_warnings(before, after, path, language, literals),
        run_timeout_s=max(TEXT_RUN_TIMEOUT_S, TREE_TEXT_PATIENCE * wall_s),
        max_rivals=TREE_TEXT_RIVALS,
        max_run=MAX_TREE_TEXTS_RUN,
    )
    return await FileRecovery(methods, project, path, limits).run()
