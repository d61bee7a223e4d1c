"""Check whether a part of a change behaves like the whole change, on inputs that no test has.

The functions in which the two differ are called with inputs near those of the tests.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suture.core.records import Candidate, Task
from suture.judge import Suite
from suture.judge.differential.behaviour_comparison import compare_candidates
from suture.judge.differential.example_calls import make_pytest_command
from suture.judge.differential.input_generation import Arguments, edge_inputs, mutate_inputs, read_arguments
from suture.judge.differential.recorded_calls import PlannedCall, get_function_name
from suture.judge.minimisation.change_parts import DEFINITIONS
from suture.judge.runners.test_command import TestCommand
from suture.judge.trials.baseline import run_baseline
from suture.judge.trials.command_trials import compare_calls
from suture.judge.trials.trial_records import ObservedCall, Proposal
from suture.judge.tuning import (
    BASELINE_TIMEOUT_S,
    COMPARED_EDGE_INPUTS,
    COMPARED_INPUTS,
    COMPARISON_TIMEOUT_S,
    MAX_COMPARED_FUNCTIONS,
)
from suture.mutation import Edit
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, overlay_candidate

FunctionPlace = tuple[str, str]
"""A path, and the name of a top-level function of that file."""
PROSE_SUFFIXES = frozenset((".md", ".rst"))
"""Endings of files that no code reads."""


def changed_functions(
    whole: Mapping[str, bytes], part: Mapping[str, bytes]
) -> frozenset[FunctionPlace] | None:
    """Return the functions in which a part of a change differs from the whole change.

    Differences in comments and docstrings do not count, nor does a new function that nothing refers to. The result is
    `None` if anything differs other than plain functions that both have.
    """
    places: set[FunctionPlace] = set()
    for path in sorted(whole.keys() | part.keys()):
        if whole.get(path) == part.get(path) or PurePosixPath(path).suffix in PROSE_SUFFIXES:
            continue
        names = _find_differing_names(path, whole, part) if path in whole and path in part else None
        if names is None:
            return None
        places |= {(path, name) for name in names}
    return frozenset(places)


def _find_differing_names(
    path: str, whole: Mapping[str, bytes], part: Mapping[str, bytes]
) -> set[str] | None:
    if not path.endswith(".py"):
        return None
    whole_tree, part_tree = parse_module(decode_text(whole[path])), parse_module(decode_text(part[path]))
    if whole_tree is None or part_tree is None:
        return None
    whole_code, whole_plain = _index_definitions(whole_tree)
    part_code, part_plain = _index_definitions(part_tree)
    names = {
        name for name in whole_code.keys() | part_code.keys() if whole_code.get(name) != part_code.get(name)
    }
    for name in tuple(names):
        if name in whole_plain and name not in part_code and not _is_referred_to(name, part):
            names.remove(name)
    return names if names <= whole_plain & part_plain else None


def _index_definitions(tree: ast.Module) -> tuple[dict[str, str], set[str]]:
    """Return (name -> code, names of plain functions); code outside of definitions has an empty name."""
    code: dict[str, str] = {"": ""}
    plain: set[str] = set()
    for node in tree.body:
        name = node.name if isinstance(node, DEFINITIONS) else ""
        for inner in ast.walk(node):
            if isinstance(inner, DEFINITIONS):
                inner.body = _drop_docstring(inner.body)
        if name:
            is_plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
            # A name that is defined twice is not plain.
            plain = plain | {name} if is_plain and name not in code else plain - {name}
        if name or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            code[name] = f"{code.get(name, '')}{ast.dump(node)}\n"
    return code, plain


def _drop_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if has_docstring else body


def _is_referred_to(name: str, files: Mapping[str, bytes]) -> bool:
    word = re.compile(rb"\b%s\b" % name.encode("utf-8", "surrogateescape"))
    return any(word.search(content) for content in files.values())


def functions_called_by_checks(task: Task) -> frozenset[str]:
    """Return the names of the functions that a task's checks call."""
    trees = [parse_module(check.source) for check in task.checks]
    nodes = (node for tree in trees if tree is not None for node in ast.walk(tree))
    return frozenset(
        node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )


TIMED_OUT = "!timeout"
"""Answer of a call that did not end in time, as the program in the sandbox writes it."""
LETTER_CASES = (str.lower, str.upper, str.title)


@dataclass(kw_only=True)
class ChangeBehaviour:
    """The behaviour of a change, to be compared with that of parts of it.

    Attributes:
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

        The two may differ in comments and docstrings, in new functions that nothing refers to, and in
        functions that answered equally when they were called. Methods, and functions that no test calls,
        cannot be called here, so a part that differs in one of them is not known to behave alike.

        Args:
            part: The part of the change, path -> text over the project's own files.
        """
        part_files = overlay_candidate(self.suite.task.files, part)
        changed = changed_functions(overlay_candidate(self.suite.task.files, self.files), part_files)
        if not changed:
            return changed is not None
        command = make_pytest_command(self.suite, overlay_candidate(self.suite.task.files, self.files))
        if command is not None:
            return await self._answers_equally(command, part_files, changed)
        if {name for _, name in changed} - functions_called_by_checks(self.suite.task):
            return False
        candidates = [Candidate(files=files, origin="repair") for files in (self.files, part)]
        comparison = await compare_candidates(candidates, self.suite, seed=self.seed)
        self.compared += comparison.calls
        return len(comparison.clusters) == 1

    async def _answers_equally(
        self, command: TestCommand, part_files: Mapping[str, bytes], changed: frozenset[FunctionPlace]
    ) -> bool:
        texts = {path: text for path, text in self.files.items() if path.endswith(".py")}
        proposals = [
            _make_replacement(path, text, decode_text(part_files[path]))
            for path, text in texts.items()
            if path in part_files and decode_text(part_files[path]) != text
        ]
        paths = {proposal.path for proposal in proposals}
        calls = [call for call in await self._plan_calls(command, texts) if call[0] in paths]
        if changed - {(path, get_function_name(name)) for path, name, _ in calls}:
            return False
        path = proposals[0].path
        whole = _make_replacement(path, texts[path], texts[path])
        # The whole change is called twice, to leave out answers that differ from one call to the next.
        answers = await compare_calls(command, [whole, whole, *proposals], calls, texts, COMPARISON_TIMEOUT_S)
        compared_functions: set[FunctionPlace] = set()
        for number, proposal in enumerate(proposals, start=2):
            # The answers of a version that did not make all calls in time are missing: nothing is compared then.
            columns = (answers.get(0, []), answers.get(1, []), answers.get(number, []))
            for (path, name, _), first, second, part_answer in zip(calls, *columns, strict=False):
                if path != proposal.path or first != second or first == TIMED_OUT:
                    continue
                self.compared += 1
                compared_functions.add((path, get_function_name(name)))
                if part_answer != first:
                    return False
        return changed <= compared_functions

    async def _plan_calls(self, command: TestCommand, texts: Mapping[str, str]) -> list[PlannedCall]:
        """Return calls of the functions that the tests call, with arguments near those of the tests."""
        if self._recorded_calls is None:
            self._recorded_calls = (await run_baseline(command, sorted(texts), (), BASELINE_TIMEOUT_S)).calls
        by_function: dict[FunctionPlace, list[str]] = {}
        for call in self._recorded_calls:
            if get_function_name(call.function) in _find_top_level_names(texts.get(call.path, "")):
                by_function.setdefault((call.path, call.function), []).append(call.arguments)
        draw = random.Random(self.seed)
        calls: list[PlannedCall] = []
        for (path, name), recorded in sorted(by_function.items())[:MAX_COMPARED_FUNCTIONS]:
            seeds = read_arguments(list(dict.fromkeys(recorded)))
            inputs = [
                *mutate_inputs(seeds, COMPARED_INPUTS, draw),
                *edge_inputs(seeds, COMPARED_EDGE_INPUTS),
                *_change_letter_cases(seeds),
            ]
            calls += [(path, name, repr(arguments)) for arguments in inputs]
        return calls


def _change_letter_cases(seeds: Sequence[Arguments]) -> list[Arguments]:
    """Return the tests' arguments with one string in another letter case, which tests seldom vary."""
    inputs: dict[str, Arguments] = {}
    for seed in seeds:
        for index, value in enumerate(seed):
            for change_case in LETTER_CASES if isinstance(value, str) else ():
                arguments = (*seed[:index], change_case(value), *seed[index + 1 :])
                inputs.setdefault(repr(arguments), arguments)
    known = {repr(seed) for seed in seeds}
    return [arguments for text, arguments in inputs.items() if text not in known][:COMPARED_EDGE_INPUTS]


def _find_top_level_names(text: str) -> frozenset[str]:
    tree = parse_module(text)
    return frozenset(getattr(node, "name", "") for node in tree.body) if tree is not None else frozenset()


def _make_replacement(path: str, old: str, new: str) -> Proposal:
    edit = Edit(start=0, end=len(old.encode("utf-8", "surrogatepass")), text=new)
    return Proposal(path=path, edits=(edit,), label="", score=1.0, operators=())
