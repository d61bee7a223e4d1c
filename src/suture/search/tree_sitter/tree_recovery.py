"""A source in another language that cannot be read: `suture.search.engine.syntax_recovery` by its tree and its search."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import CheckOutcome, Language
from suture.mutation.syntax_repair.tree_repair import find_parsable_trees, find_tree_stop
from suture.project.languages import LANGUAGES, is_source
from suture.project.workspace import text_of
from suture.search.failing_project import FailingProject
from suture.search.search_limits import SearchLimits
from suture.search.tree_sitter.tampering_signs import collect_tree_literals, find_tree_warnings
from suture.search.tree_sitter.tree_search import search_with_tree_sitter
from suture.search.engine.syntax_recovery import RUN_S, RecoveryMethods, recover_with
from suture.search.search_result import SearchResult

REFUSED = "SyntaxError"
"""What those who run JavaScript raise for what they refuse, also where its tree can be read."""
PATIENCE = 3.0
"""The tests may take so many times what the command took on the file that could not be read."""
MOST_RUN = 60
"""Texts that are run at most: a grammar says less of what is meant than CPython does."""
RIVALS = 8
"""Texts that are run after the first that passes: each costs a start of the command."""
SAYS = re.compile(
    r"(?i)syntax|unexpected|expect(?:ed|ing)|unterminated|unclosed|missing|pars(?:e|ing)|transform"
)
"""What runners say of a file that they cannot read."""


@dataclass(frozen=True, kw_only=True)
class UnparsableFile:
    """A file that cannot be read.

    Attributes:
        path: From the project's root.
        line: Where those who run it say so; 0 where its tree has a fault, which tells better.
    """

    path: str
    line: int


def find_unparsable_file(
    outcomes: Sequence[CheckOutcome], texts: Mapping[str, str], language: Language
) -> UnparsableFile | None:
    """The file that may be changed, and of which a failing test says that it cannot be read.

    Args:
        outcomes: What the tests said of the project as it is.
        texts: Path -> text of the files that may be changed.
        language: What they are written in; one with a grammar.

    Returns:
        One whose tree has a fault, else one that is refused though it has none; `None` where none is.
    """
    facts = [o.counterexample for o in outcomes if o.counterexample is not None]
    told = [(fact.file, f"{fact.exception} {fact.actual}") for fact in facts]
    for path, text in sorted(texts.items()):
        named = any((file == path or path in said) and SAYS.search(said) for file, said in told)
        if named and find_tree_stop(text, path, language) is not None:
            return UnparsableFile(path=path, line=0)
    for fact in facts:
        if fact.exception.startswith(REFUSED) and fact.file in texts and fact.line:
            return UnparsableFile(path=fact.file, line=fact.line)
    return None


async def recover_with_tree_sitter(
    project: FailingProject, unread: UnparsableFile, limits: SearchLimits, *, wall_s: float
) -> SearchResult:
    """Search for changes with which all tests pass, where a file cannot be read.

    Args:
        project: It; its language has a grammar.
        unread: The file that cannot be read.
        limits: What it may use.
        wall_s: Wall-clock seconds that the command took on the project as it is.

    Raises:
        SandboxError: The wall failed.
    """
    path, said, language = unread.path, unread.line, project.language
    read = {name: text_of(content) for name, content in project.files.items() if is_source(name, language)}
    tests = {name: read[name] for name in project.command.test_files if name in read}
    texts = {**read, **project.texts}
    literals = collect_tree_literals(tests.items(), language)

    means = RecoveryMethods(
        called=LANGUAGES[language].label,
        offered=lambda seconds: find_parsable_trees(path, texts, language, seconds=seconds, said=said),
        search_on=search_with_tree_sitter,
        warnings=lambda before, after: find_tree_warnings(before, after, path, language, literals),
        run_s=max(RUN_S, PATIENCE * wall_s),
        rivals=RIVALS,
        most_run=MOST_RUN,
    )
    return await recover_with(means, project, path, limits)
