"""Call functions of JavaScript, TypeScript and Go on the code before and after a change, outside of a test run.

The tests' calls are read from their source, and the functions are called by the driver programs of these languages.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from suture.core.records import Candidate, Language, Task
from suture.errors import PrerequisiteError
from suture.judge.differential.example_calls import ComparedVersions, ObservedAnswer, ObservedAnswers
from suture.judge.differential.input_generation import read_arguments
from suture.judge.differential.recorded_calls import PlannedCall
from suture.judge.extraction.literal_calls import find_literal_calls
from suture.judge.runners.go_build_cache import add_go_build_cache
from suture.judge.runners.test_command import TestCommand
from suture.judge.sandbox_programs import PRIVATE_FOLDER
from suture.judge.signs import read_test_texts
from suture.judge.split.call_runner import CallRunner, CandidateSession
from suture.judge.split.call_values import to_call_value, to_python_data
from suture.judge.suite import Suite
from suture.judge.tuning import EXAMPLE_CALL_TIMEOUT_S, MAX_COMPILED_EXAMPLE_FUNCTIONS, MAX_EXAMPLE_FUNCTIONS
from suture.mutation import has_grammar
from suture.mutation.tree_sitter.syntax_tree import SyntaxTree
from suture.project.languages import LANGUAGES, CallSite, detect_file_languages
from suture.project.workspace import decode_text, overlay_candidate

NO_VALUES = (["undefined"], None)
"""JSON-plus values of a function that returns nothing."""


def find_driven_language(path: str) -> Language | None:
    """Return the language of a file whose functions a driver program can call, if its grammar is installed."""
    language = next(iter(detect_file_languages((path,))), None)
    if language is None or LANGUAGES[language].calls is None or not has_grammar(language):
        return None
    return language


async def prepare_call_runner(task: Task, command: TestCommand) -> CallRunner:
    """Return what calls a task's function by a driver program; in Go with a build cache, so that this is quick."""
    driver, interpreter = LANGUAGES[task.language].calls, command.interpreter
    assert driver is not None
    if driver.compiles:
        site = CallSite(
            module=task.module, name=task.entry_point or "", folder=PRIVATE_FOLDER, files=task.files
        )
        files = {**task.files, **driver.files(site)}
        interpreter = await add_go_build_cache(interpreter, files, command.sandbox, command.settings)
    return CallRunner(task=task, sandbox=command.sandbox, settings=command.settings, interpreter=interpreter)


@asynccontextmanager
async def open_driver_versions(candidate: Candidate, suite: Suite) -> AsyncIterator[ComparedVersions | None]:
    """Yield both versions of the code; `None` if no test calls a function of the change with literals."""
    examples = tuple(_plan_calls(candidate, suite))
    if suite.command is None or not examples:
        yield None
        return
    async with AsyncExitStack() as stack:
        before, after = (
            _DriverVersion(suite.task, files, suite.command, stack)
            for files in (suite.task.files, overlay_candidate(suite.task.files, candidate.files))
        )
        yield ComparedVersions(before=before, after=after, examples=examples)


class _DriverVersion:
    """Calls functions of one version of a project, each in its own process.

    Args:
        stack: Ends these processes.
    """

    def __init__(
        self, task: Task, files: Mapping[str, bytes], command: TestCommand, stack: AsyncExitStack
    ) -> None:
        self._task, self._files, self._command, self._stack = task, files, command, stack
        self._repeats = LANGUAGES[task.language].compiled
        self._sessions: dict[tuple[str, str], CandidateSession] = {}

    async def call(self, calls: Sequence[PlannedCall]) -> ObservedAnswers:
        """Make the calls; those whose answers are not deterministic, as in a loop over a Go map, show nothing."""
        try:
            answers = [await self._call(call) for call in calls]
            again = [await self._call(call) for call in calls] if self._repeats else answers
        except PrerequisiteError:  # such as a Node that loads no TypeScript
            return ObservedAnswers()
        pairs = zip(answers, again, strict=True)
        return ObservedAnswers(answers=tuple(first if first == second else None for first, second in pairs))

    async def _call(self, call: PlannedCall) -> ObservedAnswer | None:
        path, function, text = call
        session = self._sessions.get((path, function))
        if session is None:
            session = self._sessions[path, function] = await self._open(path, function)
        (arguments,) = read_arguments([text])
        return _observe(await session.answer_call(list(map(to_call_value, arguments))))

    async def _open(self, path: str, function: str) -> CandidateSession:
        language = find_driven_language(path)
        assert language is not None
        task = Task(
            statement="", language=language, module=path, entry_point=function, files=self._task.files
        )
        session = CandidateSession(
            await prepare_call_runner(task, self._command), self._files, EXAMPLE_CALL_TIMEOUT_S
        )
        self._stack.push_async_callback(session.program.kill)
        return session


def _plan_calls(candidate: Candidate, suite: Suite) -> Iterator[PlannedCall]:
    """Yield the tests' calls of the changed functions, or else of the other functions in their files."""
    for path, text in sorted(candidate.files.items()):
        language = find_driven_language(path)
        if language is None or path not in suite.task.files:
            continue
        driver, files = LANGUAGES[language].calls, suite.task.files
        assert driver is not None
        texts = read_test_texts(suite)
        tests = {test: texts[test] for test in texts if find_driven_language(test) is not None}
        called = find_literal_calls(tests, language, driver)
        before, after = (
            SyntaxTree(source, path, language).list_functions() for source in (decode_text(files[path]), text)
        )
        names = [name for name in called if name in after and not driver.explain_unsupported(text, name)]
        names = [name for name in names if before.get(name) != after[name]] or names
        limit = MAX_COMPILED_EXAMPLE_FUNCTIONS if driver.compiles else MAX_EXAMPLE_FUNCTIONS
        yield from ((path, name, repr(arguments)) for name in names[:limit] for arguments in called[name])


def _observe(answer: Mapping[str, Any]) -> ObservedAnswer | None:
    """Return an answer to a call; `None` if there is none, or if it holds an object that is not data."""
    if "raised" in answer:
        _, name, message = answer["raised"]
        return ObservedAnswer(key=f"!{name}: {message}", raises=True)
    value = answer.get("value")
    text = json.dumps(value)
    if "value" not in answer or '["foreign"' in text:
        return None
    if isinstance(value, list) and value[0] == "results":
        *values, last = value[1] or [None]
        if isinstance(last, list) and last[0] == "error":
            return ObservedAnswer(key=f"!{last[1]}: {last[2]}", raises=True)
        value = values[0] if len(values) == 1 and last is None else ["list", value[1]]
    shown, altered = "", tuple(answer["altered"])
    with suppress(ValueError):
        shown = "None" if value in NO_VALUES else repr(to_python_data(value))
    return ObservedAnswer(key=f"{text} {altered}", value=shown, changed_arguments=altered)
