"""Check whether a part of a change behaves like the whole change, on inputs that no test has.

The functions in which the two differ are called with inputs near those of the tests.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from suture.core.records import Candidate, Task
from suture.judge import Suite
from suture.judge.differential.behaviour_comparison import compare_candidates
from suture.judge.differential.input_generation import Arguments, edge_inputs, mutate_inputs, read_arguments
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import run_baseline
from suture.judge.trials.python_calls import compare_calls
from suture.judge.trials.trial_records import ObservedCall, Proposal
from suture.judge.tuning import (
    BASELINE_TIMEOUT_S,
    COMPARED_EDGE_INPUTS,
    COMPARED_INPUTS,
    COMPARISON_TIMEOUT_S,
    MAX_COMPARED_FUNCTIONS,
)
from suture.mutation import Edit
from suture.project.languages import pytest_equivalent
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, overlay_candidate

FunctionPlace = tuple[str, str]
"""A path, and the name of a top-level function of that file."""
PROSE_SUFFIXES = frozenset((".md", ".rst"))
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def changed_functions(
    whole: Mapping[str, bytes], part: Mapping[str, bytes]
) -> frozenset[FunctionPlace] | None:
    """Return the functions in which a part of a change differs from the whole change.

    Differences in comments and docstrings do not count, nor does a new function that nothing refers to.

    Returns:
        The functions; `None` if something else differs than plain functions that both have.
    """
    found: set[FunctionPlace] = set()
    for path in sorted(whole.keys() | part.keys()):
        if whole.get(path) == part.get(path) or PurePosixPath(path).suffix in PROSE_SUFFIXES:
            continue
        names = _differing_names(path, whole, part) if path in whole and path in part else None
        if names is None:
            return None
        found |= {(path, name) for name in names}
    return frozenset(found)


def _differing_names(path: str, whole: Mapping[str, bytes], part: Mapping[str, bytes]) -> set[str] | None:
    trees = (
        [parse_module(decode_text(files[path])) for files in (whole, part)]
        if path.endswith(".py")
        else [None]
    )
    if any(tree is None for tree in trees):
        return None
    (full, plain), (less, plain_less) = (_definitions_by_name(tree) for tree in trees if tree is not None)
    names = {name for name in full.keys() | less.keys() if full.get(name) != less.get(name)}
    names -= {n for n in names if plain.get(n) and n not in less and not _is_referred_to(n, part)}
    return names if all(plain.get(name) and plain_less.get(name) for name in names) else None


def _definitions_by_name(tree: ast.Module) -> tuple[dict[str, str], dict[str, bool]]:
    """Return name -> code, and name -> whether it is a plain function; other code has an empty name."""
    pieces: dict[str, str] = {"": ""}
    plain: dict[str, bool] = {}
    for node in tree.body:
        name = node.name if isinstance(node, DEFINITIONS) else ""
        for inner in ast.walk(node):
            if isinstance(inner, DEFINITIONS):
                inner.body = _without_docstring(inner.body)
        if name:
            is_plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
            plain[name] = is_plain and name not in plain
        if name or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            pieces[name] = f"{pieces.get(name, '')}{ast.dump(node)}\n"
    return pieces, plain


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    has_one = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if has_one else body


def _is_referred_to(name: str, files: Mapping[str, bytes]) -> bool:
    word = re.compile(rb"\b%s\b" % name.encode("utf-8", "surrogateescape"))
    return any(word.search(content) for content in files.values())


def functions_called_by_checks(task: Task) -> frozenset[str]:
    """Return the names of the functions that a task's checks call."""
    trees = [parse_module(check.source) for check in task.checks]
    calls = (
        node for tree in trees if tree is not None for node in ast.walk(tree) if isinstance(node, ast.Call)
    )
    return frozenset(call.func.id for call in calls if isinstance(call.func, ast.Name))


TIMED_OUT = "!timeout"
"""Answer of a call that did not end in time, as the program in the sandbox writes it."""
LETTER_CASES = (str.lower, str.upper, str.title)

PlannedCall = tuple[str, str, str]
"""Path, function, and arguments as the source of a tuple."""


@dataclass(kw_only=True)
class ChangeBehaviour:
    """The behaviour of a change, to be compared with that of parts of it.

    Attributes:
        suite: The suite that the change passes.
        files: The change, path -> text.
        compared: Number of calls that were compared so far.
    """

    suite: Suite
    files: Mapping[str, str]
    seed: int = 0
    compared: int = 0
    _recorded_calls: tuple[ObservedCall, ...] | None = field(default=None, init=False)

    async def is_kept_by(self, part: Mapping[str, str]) -> bool:
        """Return whether a part of the change is known to behave like the whole change.

        The two may differ in code that means nothing to Python, in new functions that nothing refers to, and
        in functions that were called and answered equally. Methods, and functions that no test calls, cannot
        be called, so the answer for them is no.

        Args:
            part: The part of the change, path -> text over the project's own files.
        """
        less = overlay_candidate(self.suite.task.files, part)
        changed = changed_functions(overlay_candidate(self.suite.task.files, self.files), less)
        if not changed:
            return changed is not None
        command = self._command()
        if command is not None:
            return await self._answers_equally(command, less, changed)
        if {name for _, name in changed} - functions_called_by_checks(self.suite.task):
            return False
        candidates = [Candidate(files=files, origin="repair") for files in (self.files, part)]
        found = await compare_candidates(candidates, self.suite, seed=self.seed)
        self.compared += found.calls
        return len(found.clusters) == 1

    def _command(self) -> TestCommand | None:
        """Return the test command on the whole change, if pytest can run it."""
        own = self.suite.command
        if own is None:
            return None
        argv = (
            self.suite.task.test_command if own.is_pytest else pytest_equivalent(self.suite.task.test_command)
        )
        if argv is None:
            return None
        files = overlay_candidate(self.suite.task.files, self.files)
        task = replace(self.suite.task, test_command=argv, files=files)
        return TestCommand(task, self.suite.sandbox, self.suite.settings, own.interpreter)

    async def _answers_equally(
        self, command: TestCommand, less: Mapping[str, bytes], changed: frozenset[FunctionPlace]
    ) -> bool:
        texts = {path: text for path, text in self.files.items() if path.endswith(".py")}
        proposals = [
            _replacing(path, text, decode_text(less[path]))
            for path, text in texts.items()
            if path in less and decode_text(less[path]) != text
        ]
        paths = {proposal.path for proposal in proposals}
        calls = [call for call in await self._calls(command, texts) if call[0] in paths]
        if changed - {(path, name) for path, name, _ in calls}:
            return False
        path = proposals[0].path
        whole = _replacing(path, texts[path], texts[path])
        # The whole change is called twice, to leave out answers that differ from one call to the next.
        asked = [whole, whole, *proposals]
        answers = await compare_calls(command, asked, calls, texts, COMPARISON_TIMEOUT_S)
        once, again = answers.get(0, []), answers.get(1, [])
        asked_of: set[FunctionPlace] = set()
        for number, proposal in enumerate(proposals, start=2):
            compared = zip(calls, once, again, answers.get(number, []), strict=False)
            repeatable = [
                ((call[0], call[1]), one, two)
                for call, one, same, two in compared
                if call[0] == proposal.path and one == same and one != TIMED_OUT
            ]
            self.compared += len(repeatable)
            asked_of |= {function for function, _, _ in repeatable}
            if any(one != two for _, one, two in repeatable):
                return False
        return changed <= asked_of

    async def _calls(self, command: TestCommand, texts: Mapping[str, str]) -> list[PlannedCall]:
        """Return calls of the functions that the tests call, with arguments near those of the tests."""
        if self._recorded_calls is None:
            self._recorded_calls = (await run_baseline(command, sorted(texts), (), BASELINE_TIMEOUT_S)).calls
        by_function: dict[tuple[str, str], list[str]] = {}
        for call in self._recorded_calls:
            if call.function in _top_level_names(texts.get(call.path, "")):
                by_function.setdefault((call.path, call.function), []).append(call.arguments)
        draw = random.Random(self.seed)
        made: list[PlannedCall] = []
        for (path, name), given in sorted(by_function.items())[:MAX_COMPARED_FUNCTIONS]:
            seeds = read_arguments(list(dict.fromkeys(given)))
            new = [
                *mutate_inputs(seeds, COMPARED_INPUTS, draw),
                *edge_inputs(seeds, COMPARED_EDGE_INPUTS),
                *_in_other_letter_cases(seeds),
            ]
            made += [(path, name, repr(arguments)) for arguments in new]
        return made


def _in_other_letter_cases(seeds: Sequence[Arguments]) -> list[Arguments]:
    """Return the tests' arguments with one text in another letter case, which tests seldom vary."""
    found: dict[str, Arguments] = {}
    for seed in seeds:
        for place, value in enumerate(seed):
            for case in LETTER_CASES if isinstance(value, str) else ():
                made = (*seed[:place], case(value), *seed[place + 1 :])
                found.setdefault(repr(made), made)
    known = {repr(seed) for seed in seeds}
    return [made for text, made in found.items() if text not in known][:COMPARED_EDGE_INPUTS]


def _top_level_names(text: str) -> frozenset[str]:
    tree = parse_module(text)
    return frozenset(getattr(node, "name", "") for node in tree.body) if tree is not None else frozenset()


def _replacing(path: str, old: str, new: str) -> Proposal:
    edit = Edit(start=0, end=len(old.encode("utf-8", "surrogatepass")), text=new)
    return Proposal(path=path, edits=(edit,), label="", score=1.0, operators=())
