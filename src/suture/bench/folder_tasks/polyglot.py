"""Exercises in the layout of aider's polyglot benchmark: two attempts, the second with the tests' output.

A folder holds `LANGUAGE/exercises/practice/NAME`, as tracks of Exercism do. The model reads the instructions and the
stubs, and writes the stubs' files. If the tests fail, it gets one more reply, in which it sees what they reported. So
these tests are feedback, as that benchmark defines it, and a pass at the second attempt is no pass of hidden tests.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from suture.api import WriteOptions, solve
from suture.bench.folder_tasks.folder_rows import AttemptRow, make_attempt_row
from suture.bench.folder_tasks.folder_task import (
    AttemptTools,
    UnusableTask,
    hash_files,
    refuse_task_on_fault,
    require_result,
    shorten_reason,
)
from suture.bench.running.evaluation import UNLIMITED_SECONDS, UNLIMITED_TOKENS, make_run_settings
from suture.core.records import Candidate, Language, Project, Task, Verdict, content_hash
from suture.core.settings import BudgetSettings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.project.languages import LANGUAGES, detect_command, find_language
from suture.project.test_commands import escape_glob
from suture.project.workspace import (
    decode_text,
    default_protected,
    is_protected,
    overlay_candidate,
    take_snapshot,
)
from suture.sandbox import discover_programs

RECIPE = "greedy"
"""The recipe of each attempt: one reply and no loop, because the benchmark counts replies."""
MAX_ATTEMPTS = 2
INSTRUCTIONS = (".docs/introduction.md", ".docs/instructions.md", ".docs/instructions.append.md")
"""The texts of an exercise, in the order in which a solver reads them."""
TRACK_FOLDERS = (".approaches/", ".articles/", ".docs/", ".meta/")
"""Folders of an exercise that are not part of its project. `.meta` may hold a solution."""
REQUEST = (
    "Write {files}. Keep the names that are there, because tests use them, and use only the standard library."
)
SKIPPED_TESTS: Mapping[Language, tuple[tuple[str, str], ...]] = {
    "javascript": ((r"\bx(test|it|describe)\(", r"\1("), (r"\b(test|it|describe)\.skip\(", r"\1(")),
    "java": ((r"@Disabled(\([^)]*\))?[ \t]*\n?", ""),),
    "rust": ((r"#\[ignore[^\]]*\][ \t]*\n?", ""),),
}
"""Language -> (pattern, replacement) that enable the tests which a track switches off until a learner reaches them."""
AttemptResult = tuple[Mapping[str, str], AttemptRow]
"""What an attempt wrote, path -> text, and its row without a reward."""
AttemptFunction = Callable[[Mapping[str, str], Verdict | None], Awaitable[AttemptResult]]


@dataclass(frozen=True, kw_only=True)
class PolyglotTask:
    """An exercise.

    Attributes:
        id: The language and the name, such as `python/two-fer`.
        root: The folder in which programs and packages are looked for.
        statement: The instructions with the request for the files to write.
        stubs: The files to write as they are given, path -> content.
        support: All other files of the project, such as its manifest, which no attempt may change.
        reference: The exercise's own solution, path -> text; empty if it has none.
    """

    id: str
    language: Language
    root: Path
    statement: str
    stubs: Mapping[str, bytes]
    tests: Mapping[str, bytes] = field(repr=False)
    support: Mapping[str, bytes] = field(repr=False)
    reference: Mapping[str, str] = field(repr=False)

    @property
    def max_attempts(self) -> int:
        """Number of attempts that the benchmark allows."""
        return MAX_ATTEMPTS

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that defines the exercise."""
        groups = [hash_files(files) for files in (self.stubs, self.tests, self.support)]
        return content_hash([self.statement, *groups, dict(self.reference)])

    async def measure(self, tools: AttemptTools) -> tuple[AttemptRow, ...]:
        """Attempt the exercise, and once more if the tests fail; see `FolderTask.measure`."""

        async def attempt(code: Mapping[str, str], verdict: Verdict | None) -> AttemptResult:
            return await self.attempt(code, verdict, tools)

        return await self.measure_attempts(tools, attempt)

    async def measure_attempts(self, tools: AttemptTools, attempt: AttemptFunction) -> tuple[AttemptRow, ...]:
        """Grade attempts that anyone makes; see `FolderTask.measure`.

        Args:
            attempt: Called with the code so far and its verdict, which is `None` before the first attempt.
        """
        suite = await self._prepare_suite(tools)
        await self._require_distinguishing_tests(suite)
        code = {path: decode_text(content) for path, content in self.stubs.items()}
        verdict: Verdict | None = None
        rows: list[AttemptRow] = []
        while len(rows) < self.max_attempts and (verdict is None or not verdict.all_passed):
            written, row = await attempt(code, verdict)
            code |= written
            verdict = await check_candidate(Candidate(files=code, origin="sample"), suite)
            reason = "" if verdict.all_passed else _explain_failure(verdict)
            rows.append(replace(row, reward=float(verdict.all_passed), reason=reason))
        return tuple(rows)

    async def attempt(
        self, code: Mapping[str, str], verdict: Verdict | None, tools: AttemptTools
    ) -> AttemptResult:
        """Let Suture write the code, or repair it if there is a verdict on it."""
        task = self._first_task() if verdict is None else self._second_task(code)
        result = await solve(task, self._make_options(tools))
        require_result(result, tools.settings)
        written = result.candidate.files if result.candidate is not None else {}
        return written, make_attempt_row(result, 0.0, "")

    def _make_options(self, tools: AttemptTools) -> WriteOptions:
        budget = BudgetSettings(attempts=1, tokens=UNLIMITED_TOKENS, seconds=UNLIMITED_SECONDS)
        settings = make_run_settings(tools.settings, RECIPE, budget)
        return WriteOptions(settings=settings, model=tools.model, sandbox=tools.sandbox, existing=self.root)

    def _first_task(self) -> Task:
        """Return the task to write the code, which shows no test."""
        module, *others = self.stubs
        return Task(
            statement=self.statement,
            language=self.language,
            module=module,
            extra_modules=tuple(others),
            files={**self.support, **self.stubs},
            protected=self._protected,
            writable=self._writable,
            project=Project(kind=None, name=self.id.rpartition("/")[2], is_feature_untested=True),
        )

    def _second_task(self, code: Mapping[str, str]) -> Task:
        """Return the task to repair the code of the first attempt, which shows its tests."""
        files = {**self.support, **self.tests, **overlay_candidate(self.stubs, code)}
        return Task(
            statement=self.statement,
            kind="heal",
            language=self.language,
            files=files,
            test_command=self.find_test_command(),
            protected=self._protected,
            writable=self._writable,
        )

    @property
    def _protected(self) -> tuple[str, ...]:
        return (*default_protected(), *map(escape_glob, (*self.tests, *self.support)))

    @property
    def _writable(self) -> tuple[str, ...]:
        return tuple(map(escape_glob, self.stubs))

    def find_test_command(self) -> tuple[str, ...]:
        """Return the command that runs the tests.

        Raises:
            UnusableTask: The files do not show it.
        """
        files = {**self.support, **self.stubs, **self.tests}
        detected = detect_command(files, tuple(self.tests), lambda: True)
        if detected is None:
            raise UnusableTask("its files do not show how it is tested")
        return detected.command

    async def _prepare_suite(self, tools: AttemptTools) -> Suite:
        """Return the tests that grade, prepared on the stubs in a sandbox that no attempt uses."""
        limits = tools.settings.sandbox
        with refuse_task_on_fault():
            interpreter = discover_programs(self.root, os.environ, self.language, limits.python)
            task = self._second_task({})
            return await prepare_suite(task, tools.judge, limits, interpreter, run=True)

    async def _require_distinguishing_tests(self, suite: Suite) -> None:
        """Check that the tests fail on the stubs, and pass on the exercise's own solution if it has one."""
        stub_verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
        if stub_verdict.all_passed:
            raise UnusableTask("its tests pass on the stubs")
        if not self.reference:
            return
        verdict = await check_candidate(Candidate(files=self.reference, origin="sample"), suite)
        if not verdict.all_passed:
            raise UnusableTask(f"its own solution does not pass here: {_explain_failure(verdict)}")


def load_polyglot_tasks(folder: Path) -> tuple[PolyglotTask, ...]:
    """Return the exercises in a folder, by id; none if it has another layout.

    Raises:
        UsageError: An exercise cannot be read, or Suture does not know its language.
    """
    configurations = sorted(folder.glob("*/exercises/practice/*/.meta/config.json"))
    return tuple(_load_exercise(path.parents[1]) for path in configurations)


def _load_exercise(folder: Path) -> PolyglotTask:
    track = folder.parents[2]
    language = find_language(track.name)
    files = dict(take_snapshot(folder).files)
    paths_by_role = _read_file_lists(files, folder)
    instructions = [decode_text(files[path]).strip() for path in INSTRUCTIONS if path in files]
    # A track of Rust names `Cargo.toml` as a file to write. No attempt may write what decides how tests run.
    solution = [path for path in paths_by_role["solution"] if path in files and not is_protected(path)]
    if not instructions or not solution or not any(path in files for path in paths_by_role["test"]):
        raise UsageError(f"{str(folder)!r} lacks its instructions, its stubs or its tests")
    examples = [path for path in paths_by_role["example"] if path in files]
    project = {path: content for path, content in files.items() if not path.startswith(TRACK_FOLDERS)}
    tests = {path: project[path] for path in paths_by_role["test"] if path in project}
    request = REQUEST.format(files=" and ".join(f"`{path}`" for path in solution))
    has_packages = bool(LANGUAGES[language].packages) and (track / LANGUAGES[language].packages).is_dir()
    return PolyglotTask(
        id=f"{track.name}/{folder.name}",
        language=language,
        root=track if has_packages else folder,
        statement="\n\n".join((*instructions, request)),
        stubs={path: files[path] for path in solution},
        tests={path: _enable_tests(content, language) for path, content in tests.items()},
        support={path: text for path, text in project.items() if path not in tests and path not in solution},
        reference={
            path: decode_text(files[example]) for path, example in zip(solution, examples, strict=False)
        }
        if len(examples) == len(solution)
        else {},
    )


def _read_file_lists(files: Mapping[str, bytes], folder: Path) -> dict[str, list[str]]:
    """Return the lists of an exercise's configuration: `solution`, `test` and `example`."""
    subject = f"{str(folder)!r} has a .meta/config.json that"
    try:
        configuration: Any = json.loads(files[".meta/config.json"])
        lists = configuration["files"]
        paths_by_role = {name: lists.get(name) or [] for name in ("solution", "test", "example")}
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise UsageError(f"{subject} lists no files") from fault
    if not all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in paths_by_role.values()
    ):
        raise UsageError(f"{subject} lists something other than paths")
    return paths_by_role


def _enable_tests(content: bytes, language: Language) -> bytes:
    text = content.decode("utf-8", "surrogateescape")
    for pattern, replacement in SKIPPED_TESTS.get(language, ()):
        text = re.sub(pattern, replacement, text)
    return text.encode("utf-8", "surrogateescape")


def _explain_failure(verdict: Verdict) -> str:
    """Return in one line how many tests did not pass, and what the first one saw, or an error that was printed."""
    if not verdict.outcomes:
        return "no test ran"
    first = next(iter(verdict.counterexamples), None)
    symptom = (first.exception or f"expected {first.expected}, got {first.actual}") if first else ""
    if verdict.evidence == "exit_status":
        errors = (line for line in verdict.output.splitlines() if "error" in line.lower())
        symptom = next(errors, symptom)
    return shorten_reason(f"{len(verdict.failed)} of {len(verdict.outcomes)} tests fail: {symptom}")
