"""Runs the same calls on plausible repairs, in a language whose functions a driver program can call.

The calls are those of the tests whose arguments are all literals, and variations of them. An *answer* is what a
call returns or raises. Answers order repairs, but they do not decide which of them is correct.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from suture.core.records import Language, Task
from suture.errors import PrerequisiteError
from suture.judge.differential.input_generation import Arguments
from suture.judge.extraction.call_examples import extract_calls, parse_call
from suture.judge.runners.go_build_cache import add_go_build_cache
from suture.judge.runners.test_command import TestCommand
from suture.judge.sandbox_programs import PRIVATE_FOLDER
from suture.judge.split.call_runner import CallRunner
from suture.judge.split.call_values import render_value, to_call_value, to_python_data, values_match
from suture.judge.trials.failing_project import FailingProject
from suture.judge.trials.trial_records import Proposal
from suture.judge.trials.tuning import PARALLEL_RUNS
from suture.mutation import Edit, apply_edits
from suture.mutation.edits import encode_source
from suture.mutation.tree_sitter.node_kinds import CALLS
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, walk
from suture.mutation.tree_sitter.tree_locations import literals_near_edit
from suture.project.languages import LANGUAGES, CallDriver, CallSite, Interpreter, JsonPlus
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

if TYPE_CHECKING:
    from tree_sitter import Node

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
        interpreter = await _prepare_interpreter(command, functions, files, driver)
        for function in functions:
            task = Task(statement="", language=language, module=function.path, entry_point=function.name)
            runner = CallRunner(
                task=task, sandbox=command.sandbox, settings=command.settings, interpreter=interpreter
            )
            answers = await _run_calls(runner, function, projects, seconds / len(functions))
            call_count = len(function.calls)
            if _is_deterministic(answers, call_count):
                first_answers = {number: all_answers[:call_count] for number, all_answers in answers.items()}
                deterministic.append((function, first_answers))
    except PrerequisiteError as fault:
        result.notes = (*result.notes, f"repairs were not compared on other inputs: {fault.message}")
        return no_answers
    return _collect_answers(deterministic, count, driver)


async def _prepare_interpreter(
    command: TestCommand,
    functions: Sequence[_CalledFunction],
    files: Mapping[str, bytes],
    driver: CallDriver,
) -> Interpreter:
    """Return the interpreter of the language; in Go with a build cache, so that repairs compile quickly."""
    if not driver.compiles or not functions:
        return command.interpreter
    site = CallSite(module=functions[0].path, name=functions[0].name, folder=PRIVATE_FOLDER, files=files)
    driver_files = driver.files(site)
    return await add_go_build_cache(command.interpreter, driver_files, command.sandbox, command.settings)


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
    """Return an answer as text, in the form that Python's calls have (see `call_outcomes`)."""
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
    calls_in_tests = sorted(_called_with_literals(tests, language, driver).items())
    for path in sorted({proposal.path for proposal in proposals}):
        changes = [proposal.edits for proposal in proposals if proposal.path == path]
        tree = SyntaxTree(result.texts[path], path, language)
        comments = "\n".join(tree.text(node) for node in walk(tree.root) if node.type == "comment")
        literals: dict[str, None] = {}
        for edits in changes:
            literals |= dict.fromkeys(literals_near_edit(language, path, tree.source, edits))
        mentioned = [values[0] for text in literals if (values := _read_literals(text, driver))]
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


def _called_with_literals(
    tests: Mapping[str, str], language: Language, driver: CallDriver
) -> dict[str, list[Arguments]]:
    """Return name of a function -> the arguments of the tests' calls that are plain data."""
    calls: dict[str, dict[str, Arguments]] = {}  # name -> source of the arguments -> arguments
    for path, text in tests.items():
        tree = SyntaxTree(text, path, language)
        for node in walk(tree.root):
            callee, argument_list = get_field(node, "function"), get_field(node, "arguments")
            if node.type not in CALLS or callee is None or argument_list is None:
                continue
            name = tree.text(get_field(callee, "property", "field") or callee)
            for source in (tree.text(argument_list)[1:-1], *expand_table_rows(tree, argument_list)):
                arguments = _read_literals(source, driver)
                if arguments:
                    calls.setdefault(name, {}).setdefault(source, arguments)
    return {name: list(by_source.values()) for name, by_source in calls.items()}


def _read_literals(text: str, driver: CallDriver) -> Arguments | None:
    """Return literals that are separated by commas as plain data; `None` if one is not a literal."""
    values = driver.read_literals(text)
    if values is None:
        return None
    with suppress(ValueError):
        return tuple(to_python_data(value, statically_typed=driver.statically_typed) for value in values)
    return None


def expand_table_rows(tree: SyntaxTree, argument_list: Node) -> list[str]:
    """Return the arguments of a call in a table-driven test, once for each row of the table.

    Go's tests loop over a table of structs and call `f(c.in)`, where `c` is a row.
    """
    arguments = argument_list.named_children
    fields = {tree.text(name) for argument in arguments if (name := _row_field(argument)) is not None}
    if not fields:
        return []
    test = outer = tree.enclosing_function(argument_list)
    while outer is not None:
        test, outer = outer, tree.enclosing_function(outer)
    for scope in (test, tree.root):  # a test's own table comes before another one with the same fields
        all_rows = tree.cached(f"rows {scope.id}", partial(_table_rows, scope)) if scope is not None else []
        rows = [row for row in all_rows if fields <= row.keys()]
        if rows:
            return [
                ", ".join(_fill_in_field(tree, argument, row) for argument in arguments)
                for row in rows[: tuning.MAX_TABLE_ROWS]
            ]
    return []


def _row_field(argument: Node) -> Node | None:
    """Return the field in an argument such as `c.in`; `None` for any other argument."""
    owner = get_field(argument, "operand")
    is_field = argument.type == "selector_expression" and owner is not None and owner.type == "identifier"
    return get_field(argument, "field") if is_field else None


def _fill_in_field(tree: SyntaxTree, argument: Node, row: Mapping[str, str]) -> str:
    """Return the text of an argument, with the value of the row in place of a field."""
    name = _row_field(argument)
    return row[tree.text(name)] if name is not None else tree.text(argument)


def _table_rows(scope: Node, tree: SyntaxTree) -> list[dict[str, str]]:
    """Return field -> text of its value, for each struct in the tables of a scope."""
    return [row for node in walk(scope) for row in _rows_of_literal(tree, node)]


def _rows_of_literal(tree: SyntaxTree, node: Node) -> Iterator[dict[str, str]]:
    """Yield the rows of a table such as `[]struct{ in, out int }{{1, 2}}`, or of a map of structs."""
    table_type, body = get_field(node, "type"), get_field(node, "body")
    if node.type != "composite_literal" or table_type is None or body is None:
        return
    names = _struct_fields(tree, get_field(table_type, "element", "value"))
    for element in body.named_children if names else ():
        row = element.named_children[-1] if element.type == "keyed_element" else element
        while row.type == "literal_element" and row.named_child_count == 1:
            row = row.named_children[0]
        if row.type == "literal_value":
            yield _row_values(tree, row, names)


def _row_values(tree: SyntaxTree, row: Node, names: list[str]) -> dict[str, str]:
    """Return field -> text of its value, for a struct such as `{1, 2}` or `{in: 1, out: 2}`."""
    elements = [element for element in row.named_children if element.type != "comment"]
    if all(element.type == "keyed_element" for element in elements):
        return {tree.text(e.named_children[0]): tree.text(e.named_children[-1]) for e in elements}
    # A file that does not compile may have another number of values than fields.
    return dict(zip(names, map(tree.text, elements), strict=False))


def _struct_fields(tree: SyntaxTree, struct: Node | None) -> list[str]:
    """Return the names of a struct's fields in order; a named struct must be declared in the file."""
    if struct is not None and struct.type == "type_identifier":
        specs = (node for node in walk(tree.root) if node.type == "type_spec")
        matching_specs = (spec for spec in specs if tree.text(spec.named_children[0]) == tree.text(struct))
        struct = get_field(spec, "type") if (spec := next(matching_specs, None)) is not None else None
    if struct is None or struct.type != "struct_type":
        return []
    declared = (node for node in walk(struct) if node.type == "field_declaration")
    return [tree.text(name) for node in declared for name in node.children_by_field_name("name")]
