"""What plausible repairs answer to calls, in a language whose functions a program of ours can call.

The calls are those of the tests that are of literals alone, changed a little. What comes back is data, and
orders repairs; it decides nothing.
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
from suture.judge.differential.input_generation import Arguments
from suture.judge.extraction.call_examples import calls_in, read_call
from suture.judge.runners.go_build_cache import with_library
from suture.judge.runners.test_command import TestCommand
from suture.judge.sandbox_programs import PRIVATE_FOLDER
from suture.judge.split.call_runner import Calls
from suture.judge.split.call_values import plain_of, plus_of, same, shown
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import apply_edits
from suture.mutation.tree_sitter.grammars import CALLS
from suture.mutation.tree_sitter.tree_locations import literals_near_edit
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree, get_field, walk
from suture.project.languages import LANGUAGES, CallDriver, CallSite, Interpreter, Plus
from suture.search.ranking.call_outcomes import LATE, NOTHING_SEEN, OPAQUE, CallOutcomes, generate_inputs, is_conclusive
from suture.search.failing_project import FailingProject
from suture.search.tree_sitter.table_rows import arguments_by_row
from suture.search.ranking.repair_scoring import CallComparison
from suture.search.search_result import SearchResult

MOST_FUNCTIONS, MOST_COMPILED = 4, 2
"""Of all; where each is compiled anew for each repair, of those that some repair changes."""
AT_ONCE = 2
CALL_S = 0.5
"""Wall-clock seconds of a call."""
GRACE_S = 1.0
Answers = dict[int, list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class _AskedFunction:
    """One that is asked: the arguments of each call, and what the code's own words say of some of them.

    Attributes:
        path: Its file.
        name: Its name.
        calls: The arguments of each.
        said: What the last of the calls give, as comments have it.
    """

    path: str
    name: str
    calls: Sequence[Sequence[Plus]]
    said: Sequence[Plus]


async def compare_repairs(
    proposals: Sequence[Proposal],
    found: SearchResult,
    project: FailingProject,
    tests: Mapping[str, str],
    *,
    seed: int,
    seconds: float,
) -> CallComparison:
    """Ask plausible repairs the same calls.

    Args:
        proposals: The repairs.
        found: What the search found; it is told where they cannot be asked.
        project: The project; its command's wall is used.
        tests: Path -> text of the tests.
        seed: Of the calls.
        seconds: Wall-clock seconds for all.

    Raises:
        SandboxError: The wall failed.
    """
    command, files, language = project.command, project.files, project.language
    driver = LANGUAGES[language].calls
    nothing = CallComparison(calls=(), answered=[CallOutcomes() for _ in proposals], broken=[0 for _ in proposals])
    if driver is None or len(proposals) < 2:
        return nothing
    functions = _functions(proposals, found, tests, language, driver, random.Random(seed))
    # The code as it is comes first: without it nothing is known of what calls come to.
    changed = [
        {p.path: apply_edits(found.texts[p.path], p.edits).encode("utf-8", "surrogatepass")} for p in proposals
    ]
    kept: list[_AskedFunction] = []
    said: list[Answers] = []
    try:
        interpreter = await _able(command, functions, files, driver)
        for function in functions:
            task = Task(statement="", language=language, module=function.path, entry_point=function.name)
            calls = Calls(
                task=task,
                sandbox=command.sandbox,
                settings=command.settings,
                interpreter=interpreter,
            )
            projects = [{**files, **own} for own in ({}, *changed)]
            told = await _answers(calls, function, projects, seconds / len(functions))
            count = len(function.calls)
            if _is_steady(told, count):
                kept.append(function)
                said.append({number: answers[:count] for number, answers in told.items()})
    except PrerequisiteError as fault:
        found.notes = (*found.notes, f"repairs were not compared on other inputs: {fault.message}")
        return nothing
    return _asked(kept, said, len(proposals), driver)


async def _able(
    command: TestCommand, functions: Sequence[_AskedFunction], files: Mapping[str, bytes], driver: CallDriver
) -> Interpreter:
    """The programs; what the driver itself imports is not compiled anew for each repair."""
    if not driver.compiles or not functions:
        return command.interpreter
    site = CallSite(module=functions[0].path, name=functions[0].name, folder=PRIVATE_FOLDER, files=files)
    return await with_library(command.interpreter, driver.files(site), command.sandbox, command.settings)


async def _answers(
    calls: Calls, function: _AskedFunction, projects: Sequence[Mapping[str, bytes]], seconds: float
) -> Answers:
    """Place of a project -> its answers, as far as there was time for all of them."""
    answers: Answers = {}
    gate = asyncio.Semaphore(AT_ONCE)
    again = function.calls if calls.driver.typed else ()

    async def one(number: int, files: Mapping[str, bytes]) -> None:
        async with gate:
            answers[number] = await calls.answers([*function.calls, *again], files, CALL_S)

    tasks = [asyncio.create_task(one(number, files)) for number, files in enumerate(projects)]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + GRACE_S):
                await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return answers


def _is_steady(told: Answers, count: int) -> bool:
    """Whether what each project answers first is what it answers when it is asked again.

    In Go it need not be: a loop over a map goes another way each time. One such call casts doubt on all.
    """
    pairs = [
        pair for answers in told.values() for pair in zip(answers[:count], answers[count:], strict=False)
    ]
    return all(one == other or "died" in one or "died" in other for one, other in pairs)


def _asked(
    functions: Sequence[_AskedFunction], said: Sequence[Answers], count: int, driver: CallDriver
) -> CallComparison:
    def all_of(number: int) -> list[dict[str, Any]]:
        known = all(number in own for own in said)
        return [answer for own in said for answer in own[number]] if known else []

    unchanged = [_text(answer) for answer in all_of(0)]
    answered, broken = [], []
    for number in range(1, count + 1):
        answers = [_text(answer) for answer in all_of(number)]
        reached = sum(a != b and is_conclusive(a) for a, b in zip(answers, unchanged, strict=False))
        answered.append(CallOutcomes(answers=tuple(answers), reached=reached))
        broken.append(sum(_broken(f, own.get(number, ())) for f, own in zip(functions, said, strict=True)))
    calls = [
        (f.path, f.name, f"({', '.join(shown(value, driver) for value in args)})")
        for f in functions
        for args in f.calls
    ]
    return CallComparison(calls=calls, answered=answered, broken=broken)


def _text(answer: Mapping[str, Any]) -> str:
    """As Python's answers: `!` where an exception came or no end, `?` where nothing that can be seen did."""
    if "raised" in answer:
        _, name, said = answer["raised"]
        return f"!{name}: {said}"
    value = answer.get("value", "")
    if "value" not in answer:
        return LATE
    text = json.dumps(value)
    unseen = OPAQUE if '["foreign"' in text else ""
    return f"{NOTHING_SEEN if value == ['undefined'] else ''}{text}{unseen}"


def render_answer(language: Language, text: str) -> str:
    """An answer for people.

    Args:
        language: Of the program that answered.
        text: The answer.
    """
    driver = LANGUAGES[language].calls
    if text.startswith("!") or driver is None:
        return "no end in time" if text == LATE else f"raises {text[1:]}"
    return shown(json.loads(text.removeprefix(NOTHING_SEEN).removesuffix(OPAQUE)), driver)


def _broken(function: _AskedFunction, answers: Sequence[Mapping[str, Any]]) -> int:
    """Examples in the code's own words that a repair does not answer as they say."""
    last = answers[len(answers) - len(function.said) :]
    pairs = zip(last, function.said, strict=False)
    return sum("value" not in answer or not same(wanted, answer["value"]) for answer, wanted in pairs)


def _functions(
    proposals: Sequence[Proposal],
    found: SearchResult,
    tests: Mapping[str, str],
    language: Language,
    driver: CallDriver,
    draw: random.Random,
) -> list[_AskedFunction]:
    """The functions of changed files that the tests call with literals, and what they are asked."""
    made = []
    for path in sorted({proposal.path for proposal in proposals}):
        view = SyntaxTree(found.texts[path], path, language)
        comments = "\n".join(view.text(node) for node in walk(view.root) if node.type == "comment")
        texts = {
            text: None
            for one in proposals
            if one.path == path
            for text in literals_near_edit(language, path, found.texts[path], one.edits)
        }
        named = [value[0] for text in texts if (value := _plain(text, driver))]
        for name, seeds in sorted(_called(tests, language, driver).items()):
            if name in view.functions and not driver.unfit(view.source, name):
                calls = [[plus_of(value) for value in one] for one in generate_inputs(seeds, named, draw)]
                told = [read_call(c.source, name, driver) for c in calls_in(comments, name, driver)]
                known = [call for call in told if call is not None and not call.fails]
                calls += [list(call.args) for call in known]
                made.append(
                    _AskedFunction(path=path, name=name, calls=calls, said=[call.expected for call in known])
                )
    changed = {
        (path, name)
        for path in {proposal.path for proposal in proposals}
        for name in _changed(path, proposals, found, language)
    }
    if driver.compiles:
        return ([function for function in made if (function.path, function.name) in changed] or made)[
            :MOST_COMPILED
        ]
    return made[:MOST_FUNCTIONS]


def _changed(path: str, proposals: Sequence[Proposal], found: SearchResult, language: Language) -> set[str]:
    """Names of the functions of a file in which some repair stands."""
    view = SyntaxTree(found.texts[path], path, language)
    places = [edit.start for one in proposals if one.path == path for edit in one.edits]
    around = (view.root.descendant_for_byte_range(place, place) for place in places)
    functions = (view.enclosing_function(node) for node in around if node is not None)
    names = (get_field(function, "name") for function in functions if function is not None)
    return {view.text(name) for name in names if name is not None}


def _called(tests: Mapping[str, str], language: Language, driver: CallDriver) -> dict[str, list[Arguments]]:
    """Name of a function -> the arguments of the tests' calls of it that are plain data."""
    found: dict[str, dict[str, Arguments]] = {}
    for path, text in tests.items():
        view = SyntaxTree(text, path, language)
        for node in walk(view.root):
            called, given = get_field(node, "function"), get_field(node, "arguments")
            if node.type not in CALLS or called is None or given is None:
                continue
            name = view.text(get_field(called, "property", "field") or called)
            for text in (view.text(given)[1:-1], *arguments_by_row(view, given)):
                arguments = _plain(text, driver)
                if arguments:
                    found.setdefault(name, {}).setdefault(text, arguments)
    return {name: list(own.values()) for name, own in found.items()}


def _plain(text: str, driver: CallDriver) -> Arguments | None:
    """Literals with commas between them as plain data; `None` where one is not."""
    values = driver.read(text)
    with suppress(ValueError):
        return tuple(plain_of(value, typed=driver.typed) for value in values) if values is not None else None
    return None
