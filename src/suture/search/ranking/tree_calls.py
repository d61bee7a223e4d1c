"""Runs the same calls on plausible repairs, in a language whose functions a driver program can call.

The calls are those of the tests whose arguments are all literals, and variations of them. An *answer* is what a
call returns or raises. Answers order repairs, but they do not decide which of them is correct.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from suture.core.records import Language, Task
from suture.errors import PrerequisiteError
from suture.judge.differential.driver_versions import prepare_call_runner
from suture.judge.extraction.call_examples import extract_calls, parse_call
from suture.judge.extraction.literal_calls import find_literal_calls, read_plain_literals
from suture.judge.split.call_runner import CallRunner
from suture.judge.split.call_values import render_value, to_call_value, values_match
from suture.judge.trials.target_tests import FailingProject
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.tuning import PARALLEL_RUNS
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import encode_source
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, walk
from suture.mutation.tree_sitter.tree_locations import literals_near_edit
from suture.project.languages import LANGUAGES, CallDriver, JsonPlus
from suture.search import tuning
from suture.search.ranking.call_outcomes import (
    NO_VISIBLE_EFFECT,
    OPAQUE,
    TIMED_OUT,
    CallOutcomes,
    RepairAnswers,
    count_reaching,
    generate_inputs,
)
from suture.search.search_records import SearchResult

Answers = dict[int, list[dict[str, Any]]]
"""Number of a project -> its answers to the calls of one function.

Project 0 is the unchanged code, and project `n` has the n-th repair.
"""


@dataclass(frozen=True, kw_only=True)
class _CalledFunction:
    """A function that is called.

    Attributes:
        examples: The expected results of the last calls, which are examples in comments.
    """

    path: str
    name: str
    calls: Sequence[Sequence[JsonPlus]]
    examples: Sequence[JsonPlus]


async def answer_calls(
    result: SearchResult, proposals: Sequence[Proposal], project: FailingProject, seed: int, seconds: float
) -> RepairAnswers:
    """Run the same calls on all plausible repairs.

    Args:
        result: The result of the search, which gets a note if the calls cannot be run.
        project: The project, whose command's sandbox is used.

    Raises:
        SandboxError: The sandbox failed.
    """
    command, files, language = project.command, project.files, project.language
    driver = LANGUAGES[language].calls
    count = len(proposals)
    no_answers = RepairAnswers(calls=(), outcomes=[CallOutcomes()] * count, broken_examples=[0] * count)
    if driver is None or len(proposals) < 2:
        return no_answers
    functions = _choose_functions(
        proposals, result, project.test_texts(), language, driver, random.Random(seed)
    )
    # The unchanged code comes first: a call whose answer a repair changes reaches the change.
    projects = [dict(files)]
    for proposal in proposals:
        text = apply_edits(result.texts[proposal.path], proposal.edits)
        projects.append({**files, proposal.path: encode_source(text)})
    deterministic: list[tuple[_CalledFunction, Answers]] = []
    try:
        for function in functions:
            task = Task(
                statement="", language=language, module=function.path, entry_point=function.name, files=files
            )
            runner = await prepare_call_runner(task, command)
            answers = await _run_calls(runner, function, projects, seconds / len(functions))
            call_count = len(function.calls)
            if _is_deterministic(answers, call_count):
                first_answers = {number: all_answers[:call_count] for number, all_answers in answers.items()}
                deterministic.append((function, first_answers))
    except PrerequisiteError as fault:
        result.notes = (*result.notes, f"repairs were not compared on other inputs: {fault.message}")
        return no_answers
    return _collect_answers(deterministic, count, driver)


async def _run_calls(
    runner: CallRunner, function: _CalledFunction, projects: Sequence[Mapping[str, bytes]], seconds: float
) -> Answers:
    """Return the answers of the projects that answered in time.

    In statically typed languages all calls are made a second time, to recognise answers that are not
    deterministic (see `_is_deterministic`).
    """
    answers: Answers = {}
    semaphore = asyncio.Semaphore(PARALLEL_RUNS)
    repeated_calls = function.calls if runner.driver.statically_typed else ()

    async def run(number: int, files: Mapping[str, bytes]) -> None:
        async with semaphore:
            calls = [*function.calls, *repeated_calls]
            answers[number] = await runner.answers(calls, files, tuning.CALL_TIMEOUT_S)

    tasks = [asyncio.create_task(run(number, files)) for number, files in enumerate(projects)]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + tuning.GRACE_S):
                await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return answers


def _is_deterministic(answers: Answers, count: int) -> bool:
    """Return whether each project's first answers equal those to the repeated calls.

    In Go, a loop over a map has another order each time. If one call is not deterministic, none of the
    function's answers are used.
    """
    # Without repeated calls there are no pairs. A process that died gave no answer to compare.
    pairs = [
        pair
        for all_answers in answers.values()
        for pair in zip(all_answers[:count], all_answers[count:], strict=False)
    ]
    return all(first == second or "died" in first or "died" in second for first, second in pairs)


def _collect_answers(
    functions: Sequence[tuple[_CalledFunction, Answers]], count: int, driver: CallDriver
) -> RepairAnswers:
    """Return the answers of the repairs, which are the projects 1 to `count`."""

    def encode_answers(number: int) -> list[str]:
        if not all(number in answers for _, answers in functions):
            return []
        return [_encode_answer(answer) for _, answers in functions for answer in answers[number]]

    unchanged_answers = encode_answers(0)
    outcomes, broken_counts = [], []
    for number in range(1, count + 1):
        encoded = encode_answers(number)
        reached = count_reaching(encoded, unchanged_answers)
        outcomes.append(CallOutcomes(answers=tuple(encoded), reached=reached))
        counts = (_count_broken(function, answers.get(number, ())) for function, answers in functions)
        broken_counts.append(sum(counts))
    calls = [
        (function.path, function.name, f"({', '.join(render_value(value, driver) for value in arguments)})")
        for function, _ in functions
        for arguments in function.calls
    ]
    return RepairAnswers(
        calls=calls, outcomes=outcomes, broken_examples=broken_counts, unchanged=unchanged_answers
    )


def _encode_answer(answer: Mapping[str, Any]) -> str:
    """Return an answer as a string, in the form that Python's calls have (see `call_outcomes`)."""
    if "raised" in answer:
        _, name, message = answer["raised"]
        return f"!{name}: {message}"
    if "value" not in answer:
        return TIMED_OUT
    value = answer["value"]
    text = json.dumps(value)
    # "foreign" tags a value that cannot be sent as data, such as an object of a class of the project.
    opaque = OPAQUE if '["foreign"' in text else ""
    return f"{NO_VISIBLE_EFFECT if value == ['undefined'] else ''}{text}{opaque}"


def render_answer(language: Language, answer: str) -> str:
    """Return an answer as people read it.

    Args:
        answer: The answer, as `_encode_answer` returns it.
    """
    driver = LANGUAGES[language].calls
    if answer.startswith("!") or driver is None:
        return "no end in time" if answer == TIMED_OUT else f"raises {answer[1:]}"
    return render_value(json.loads(answer.removeprefix(NO_VISIBLE_EFFECT).removesuffix(OPAQUE)), driver)


def _count_broken(function: _CalledFunction, answers: Sequence[Mapping[str, Any]]) -> int:
    """Return how many examples in comments a repair does not fulfil."""
    example_answers = answers[len(answers) - len(function.examples) :]
    return sum(
        "value" not in answer or not values_match(expected, answer["value"])
        for answer, expected in zip(example_answers, function.examples, strict=False)
    )


def _choose_functions(
    proposals: Sequence[Proposal],
    result: SearchResult,
    tests: Mapping[str, str],
    language: Language,
    driver: CallDriver,
    random_source: random.Random,
) -> list[_CalledFunction]:
    """Return the functions of changed files that the tests call with literals, with the calls to make."""
    functions: list[_CalledFunction] = []
    changed_functions: list[_CalledFunction] = []
    calls_in_tests = sorted(find_literal_calls(tests, language, driver).items())
    for path in sorted({proposal.path for proposal in proposals}):
        changes = [proposal.edits for proposal in proposals if proposal.path == path]
        tree = SyntaxTree(result.texts[path], path, language)
        comments = "\n".join(tree.text(node) for node in walk(tree.root) if node.type == "comment")
        literals: dict[str, None] = {}
        for edits in changes:
            literals |= dict.fromkeys(literals_near_edit(language, path, tree.source, edits))
        mentioned = [values[0] for text in literals if (values := read_plain_literals(text, driver))]
        changed_names = _changed_function_names(tree, changes)
        for name, seeds in calls_in_tests:
            if name in tree.functions and not driver.explain_unsupported(tree.source, name):
                inputs = generate_inputs(seeds, mentioned, random_source)
                parsed = (parse_call(c.source, name, driver) for c in extract_calls(comments, name, driver))
                examples = [call for call in parsed if call is not None and not call.fails]
                calls: list[Sequence[JsonPlus]] = [
                    list(map(to_call_value, arguments)) for arguments in inputs
                ]
                calls += [list(call.args) for call in examples]
                expected = [call.expected for call in examples]
                function = _CalledFunction(path=path, name=name, calls=calls, examples=expected)
                functions.append(function)
                if name in changed_names:
                    changed_functions.append(function)
    if not driver.compiles:
        return functions[: tuning.MAX_TREE_FUNCTIONS]
    return (changed_functions or functions)[: tuning.MAX_COMPILED_FUNCTIONS]


def _changed_function_names(tree: SyntaxTree, changes: Sequence[Sequence[Edit]]) -> set[str]:
    """Return the names of the functions of a file that some change edits."""
    offsets = [edit.start for edits in changes for edit in edits]
    nodes = (tree.root.descendant_for_byte_range(offset, offset) for offset in offsets)
    functions = (tree.enclosing_function(node) for node in nodes if node is not None)
    names = (get_field(function, "name") for function in functions if function is not None)
    return {tree.text(name) for name in names if name is not None}
