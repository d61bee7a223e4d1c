"""Compare the uses of two versions of a file, and return those that are new."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from suture.core.records import CapabilityUse, Language, Task, Verdict
from suture.judge.capabilities.changed_comparisons import find_weakened_comparisons
from suture.judge.capabilities.go.go_comparisons import find_lost_fields
from suture.judge.capabilities.go.go_uses import find_go_uses
from suture.judge.capabilities.javascript.javascript_fields import find_hidden_fields
from suture.judge.capabilities.javascript.javascript_originals import find_kept_originals
from suture.judge.capabilities.javascript.javascript_uses import find_javascript_uses
from suture.judge.capabilities.merged_names import find_borrowed_names, find_merged_names
from suture.judge.capabilities.python.python_base_classes import BaseClasses
from suture.judge.capabilities.python.python_copies import find_deceptive_copies
from suture.judge.capabilities.python.python_fields import find_dropped_fields
from suture.judge.capabilities.python.python_hidden_effects import is_unobserved
from suture.judge.capabilities.python.python_merged_names import find_merged_python_names
from suture.judge.capabilities.python.python_replaced_names import find_bound_originals
from suture.judge.capabilities.python.python_uses import find_python_uses
from suture.judge.capabilities.text_methods import find_text_methods
from suture.judge.capabilities.use import MERGED_NAME, PACKAGE_MEMBER, SECOND_NAME_FOR, Use
from suture.judge.tuning import MAX_CAPABILITY_NAME_CHARS, MAX_CAPABILITY_USES
from suture.mutation.tree_sitter.value_kinds import has_grammar, parse_source_tree
from suture.project.languages import LANGUAGES, detect_file_languages
from suture.project.mixed_files import find_mixed_files
from suture.project.workspace import decode_text, is_test_file

if TYPE_CHECKING:
    from tree_sitter import Node

RULES_BY_GRAMMAR: dict[str, Callable[[Node], list[Use]]] = {
    "tree_sitter_javascript": find_javascript_uses,
    "tree_sitter_typescript": find_javascript_uses,
    "tree_sitter_go": find_go_uses,
}
"""Package of a tree-sitter grammar -> the rules that know its nodes."""
CHANGES_BY_GRAMMAR: dict[str, Callable[[Node, Node], Iterator[Use]]] = {
    "tree_sitter_javascript": find_hidden_fields,
    "tree_sitter_typescript": find_hidden_fields,
    "tree_sitter_go": find_lost_fields,
}
"""Package of a tree-sitter grammar -> its own rule that compares the trees of two versions."""

TEST_NAME = re.compile(r"\.?test_\w+|.*@example\..*", re.DOTALL)
"""A string that may be the name of a test or an address in one."""


def is_rule_relevant(task: Task, verdict: Verdict | None = None) -> bool:
    """Return whether tests may share a process with the code, so that its capabilities matter.

    Function-level checks of new code and smoke checks run in another process than the candidate, except for checks
    that need live objects.

    Args:
        verdict: The verdict on the code. Only the verdict says which checks of new code need live objects.
    """
    outcomes = verdict.outcomes if verdict is not None else ()
    has_live_objects = any(
        outcome.evidence == "nonce" and outcome.provenance != "smoke" for outcome in outcomes
    )
    return task.kind == "heal" or bool(task.test_command) or has_live_objects


def find_change_capabilities(
    before: Mapping[str, bytes], after: Mapping[str, str]
) -> tuple[CapabilityUse, ...]:
    """Return what a change newly uses, in the order of path and line, at most `MAX_CAPABILITY_USES`.

    Tests and files that serve only tests are left out: the judge does not run a candidate's versions of them.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> text.
    """
    mixed, bases = find_mixed_files(before), BaseClasses(before, after)
    uses = [
        use
        for path, text in sorted(after.items())
        if path in mixed or not is_test_file(path)
        for use in (
            *find_file_capabilities(path, decode_text(before.get(path, b"")), text, after.values(), bases),
            *find_borrowed_names(path, text, before, after),
        )
        if not _is_unknown_to_tests(use, before)
    ]
    uses += [
        *find_bound_originals(before, after),
        *find_kept_originals(before, after),
        *find_text_methods(before, after),
    ]
    return tuple(uses[:MAX_CAPABILITY_USES])


def _is_unknown_to_tests(use: CapabilityUse, files: Mapping[str, bytes]) -> bool:
    """Return whether a use matters only to tests that mention some names, and they do not.

    A test takes a value for another one only if it mentions the names of both. A string such as `test_line` shows that
    tests are running only if they have that name. A function of a package matters if a test calls it.
    """
    tests = [f"{path}\n{decode_text(content)}" for path, content in files.items() if is_test_file(path)]
    if not tests:
        return False
    if use.name.startswith(MERGED_NAME):
        parts = use.name.removeprefix(MERGED_NAME).split(SECOND_NAME_FOR)
        names = {name for part in parts for name in re.findall(r"\w+", part.rpartition(".")[2])}
        return not names <= {word for text in tests for word in re.findall(r"\w+", text)}
    if use.path.endswith(".py") and is_unobserved(use, tests):
        return True
    member, _, package = use.name.partition(PACKAGE_MEMBER)
    if package and use.code == "patches_code":
        used = (rf"[\"']{re.escape(package)}[\"'/]", rf"\b{re.escape(member)}\(")
        return not any(all(re.search(pattern, text) for pattern in used) for text in tests)
    if use.code == "detects_environment" and TEST_NAME.fullmatch(use.name):
        name = re.escape(use.name.strip(".0123456789"))  # pytest adds a number to the name of a folder
        pattern = re.compile(name if "@" in name else rf"(?:\bdef |/|^){name}")
        return not any(map(pattern.search, tests))
    return False


def find_file_capabilities(
    path: str, before: str, after: str, changed: Collection[str] = (), bases: BaseClasses | None = None
) -> tuple[CapabilityUse, ...]:
    """Return what one file newly uses, sorted by line; each capability is named once.

    Args:
        before: The source before the change, empty for a new file.
        after: The source after the change. If it does not parse, nothing is found, because it cannot pass.
        changed: The sources of all files after the change, which may use what this one defines.
        bases: The classes of the other files, which this one may inherit from.
    """
    if before == after:
        return ()
    new_uses = _find_uses(path, after, bases) or []
    if path.endswith(".py"):
        new_uses += [*find_dropped_fields(before, after), *find_deceptive_copies(before, after)]
        new_uses += find_merged_python_names(before, after, changed)
    else:
        new_uses += [*find_merged_names(before, after), *_find_changes(path, before, after)]
    if not new_uses:
        return ()
    old_uses = _find_uses(path, before, bases)
    # `(code, key)` identifies a capability. `name` is how the source spells it.
    old_keys = {(use.code, use.key) for use in old_uses or ()}
    found: dict[tuple[str, str], Use] = {}
    # Of several names for one capability in a line, the longest says most: `sys._getframe`, not `f_locals`.
    for use in sorted(new_uses, key=lambda use: (use.line, -len(use.name))):
        # Source with a syntax error has no tree. What it names counts as used, so that mending the syntax alone is not
        # a finding.
        is_old = (use.code, use.key) in old_keys or (old_uses is None and _names_all(before, use.name))
        if not is_old:
            found.setdefault((use.code, use.key), use)
    return tuple(
        CapabilityUse(code=use.code, path=path, line=use.line, name=_shorten(use.name))
        for use in found.values()
    )


def _find_uses(path: str, text: str, bases: BaseClasses | None) -> list[Use] | None:
    """Return the uses in a file; `None` if it is invalid, or in a language without rules."""
    if path.endswith(".py"):
        return find_python_uses(path, text, bases.find_imported(path, text) if bases is not None else ())
    language, grammar = _detect_grammar(path)
    if language is None:
        return None
    return RULES_BY_GRAMMAR[grammar](parse_source_tree(text, path, language))


def _find_changes(path: str, before: str, after: str) -> list[Use]:
    """Return what only the comparison of two versions shows."""
    language, grammar = _detect_grammar(path)
    if language is None:
        return []
    trees = [parse_source_tree(text, path, language) for text in (before, after)]
    return [*CHANGES_BY_GRAMMAR[grammar](trees[0], trees[1]), *find_weakened_comparisons(trees[0], trees[1])]


def _detect_grammar(path: str) -> tuple[Language | None, str]:
    """Return the language of a file and the package of its grammar, if there are rules for it."""
    language = next(iter(detect_file_languages((path,))), None)
    packages = {package for package, _ in LANGUAGES[language].grammars.values()} if language else set[str]()
    grammar = next(iter(packages & RULES_BY_GRAMMAR.keys()), "")
    return (language, grammar) if language and grammar and has_grammar(language) else (None, "")


def _shorten(name: str) -> str:
    """Return a name in one line, because the candidate may have written it over several."""
    return " ".join(name.split())[:MAX_CAPABILITY_NAME_CHARS]


def _names_all(text: str, name: str) -> bool:
    return set(re.findall(r"\w+", name)) <= set(re.findall(r"\w+", text))
